import promises from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { RELEASE_GRACE_MS } from '../../../../infra/pool/agent/identity/release-map.ts';
import type { KnownRevision } from '../../../../infra/pool/agent/loader/known-revision.ts';
import { loadNames } from '../../../../infra/pool/agent/loader/load.ts';
import { warmUp } from '../../../../infra/pool/agent/loader/warm-up.ts';
import type { StoreOptions } from '../../../../infra/pool/agent/store/contract.ts';
import { tierSettings } from '../../../../infra/pool/agent/tier/state.ts';
import { createTextEngine, textModel } from '../../../fake/text-engine.ts';
import { patience } from '../start-agent.ts';
import { createSource, makeFile } from '../store/fixtures.ts';
import { makeRevision, nameOf, never, setUp } from './fixtures.ts';

it('A16 C8 loads the canary of a model beside its stable revision', async () => {
  const [stable, canary] = [makeRevision(), makeRevision()];
  const { loader, world, waitFor } = await setUp([stable, canary]);
  world.released = { m: { stable: stable.digest, canary: { revision: canary.digest, share: 0.1 } } };
  await loader.refresh();
  await waitFor(stable, canary);
  await loader.settled;
});

it('A11 serves with its first revision while the others load', async () => {
  const [one, other] = [makeRevision('one'), makeRevision('other')];
  const { loader, world, engine, waitFor } = await setUp([]);
  const loaded = Promise.withResolvers<undefined>();
  engine.onLoad = (model) => (model === nameOf(other) ? loaded.promise : Promise.resolve(undefined));
  world.mounted = [one, other];
  await loader.refresh();
  await loader.serving;
  expect(loader.served().map(({ description }) => description.name)).toEqual(['one']);
  loaded.resolve(undefined);
  await loader.settled;
  await waitFor(one, other);
});

it('A16 unloads a replaced revision after its last lease', async () => {
  const [old, fresh] = [makeRevision(), makeRevision()];
  const { loader, world, engine, waitFor } = await setUp([old, fresh]);
  world.released = { m: { stable: old.digest } };
  await loader.refresh();
  await waitFor(old);
  const lease = await loader.lease('m', old.digest, never);
  world.released = { m: { stable: fresh.digest } };
  await loader.refresh();
  await waitFor(old, fresh);
  world.now += RELEASE_GRACE_MS;
  await loader.refresh();
  expect(engine.calls).toEqual([`+${nameOf(old)}`, `+${nameOf(fresh)}`]);
  lease?.release();
  await waitFor(fresh);
  expect(engine.calls).toEqual([`+${nameOf(old)}`, `+${nameOf(fresh)}`, `-${nameOf(old)}`]);
});

it('A16 unloads a revision that left the release after edges know it', async () => {
  const [stable, canary] = [makeRevision(), makeRevision()];
  const { loader, world, waitFor } = await setUp([stable, canary]);
  world.released = { m: { stable: stable.digest, canary: { revision: canary.digest, share: 0.1 } } };
  await loader.refresh();
  await waitFor(stable, canary);
  world.released = { m: { stable: stable.digest } };
  await loader.refresh();
  world.now += RELEASE_GRACE_MS - 1;
  await loader.refresh();
  const lease = await loader.lease('m', canary.digest, never);
  expect(loader.served()).toHaveLength(2);
  lease?.release();
  world.now += 1;
  await loader.refresh();
  await waitFor(stable);
});

it('A11 lets a request wait for the load of its revision', async () => {
  const [one, other] = [makeRevision('one'), makeRevision('other')];
  const bytes = { engine: 15_000, ram: 1e9, ssd: 1e9 };
  const { loader, world, engine, waitFor } = await setUp([one, other], { bytes });
  engine.bytes = bytes.engine;
  world.released = { one: { stable: one.digest }, other: { stable: other.digest } };
  await loader.refresh();
  // Not all fit, so none is pinned, and requests decide.
  expect(loader.unloaded().map(({ tier }) => tier)).toEqual(['blob', 'blob']);
  expect(loader.residency('one', one.digest)).toMatchObject({ leases: 0, why: 'no request is expected soon' });
  const first = await loader.lease('one', one.digest, never);
  await waitFor(one);
  expect(loader.unloaded()).toMatchObject([{ name: 'other', tier: 'blob' }]);
  expect(loader.residency('one', one.digest)).toMatchObject({ leases: 1, why: 'in use' });
  const second = loader.lease('other', other.digest, never);
  first?.release();
  await waitFor(other);
  (await second)?.release();
  expect(engine.calls.filter((call) => call.startsWith('-'))).toEqual([`-${nameOf(one)}`]);
});

it('A27 loads a language before its hour until it falls silent', async () => {
  const revisionOf = (language: string): KnownRevision => {
    const known = makeRevision(language);
    return { ...known, description: { ...known.description, languages: [language] } };
  };
  const [fi, en] = [revisionOf('fi'), revisionOf('en')];
  const bytes = { engine: 15_000, ram: 1e9, ssd: 1e9 };
  const { loader, world, engine, waitFor } = await setUp([fi, en], { bytes });
  engine.bytes = bytes.engine;
  // A load that takes no time is not worth a start ahead.
  engine.onLoad = async () => {
    world.now += 1_000;
    return undefined;
  };
  world.released = { fi: { stable: fi.digest }, en: { stable: en.digest } };
  const request = async ({ digest, description }: KnownRevision) =>
    (await loader.lease(description.name, digest, never))?.release();
  const hour = 3_600_000;
  await loader.refresh();
  // `fi` is spoken in one hour of the first day.
  for (let minute = 0; minute < 60; minute += 1) {
    world.now = 9 * hour + minute * 60_000;
    await request(fi);
  }
  for (const day of [1, 2, 3]) {
    world.now = (24 * day - 13) * hour;
    await request(en);
    await waitFor(en);
    world.now = (24 * day + 9) * hour - tierSettings.leadMs;
    await loader.refresh();
    if (day < 3) await waitFor(fi);
  }
  expect(loader.residency('fi', fi.digest)?.why).toBe('no request is expected soon');
});

it('R14 counts moves, waits, downloads and the bytes of each tier', async () => {
  const [one, lost] = [makeRevision('one'), makeRevision('lost')];
  const gone = { ...lost, source: createSource([]).source };
  const bytes = { engine: 15_000, ram: 50_000, ssd: 1e9 };
  const { loader, world, engine, waitFor, scrape } = await setUp([one, gone], { bytes });
  engine.bytes = bytes.engine;
  world.released = { one: { stable: one.digest }, lost: { stable: gone.digest } };
  await loader.refresh();
  (await loader.lease('one', one.digest, never))?.release();
  await waitFor(one);
  const givenUp = new AbortController();
  const refused = loader.lease('lost', gone.digest, givenUp.signal);
  await expect.poll(() => loader.failures(), patience).toMatchObject([{ model: 'lost' }]);
  givenUp.abort();
  expect(await refused).toBeUndefined();
  expect(await scrape()).toMatchObject({
    'tier_bytes{tier=gpu}': 15_000,
    'tier_limit_bytes{tier=gpu}': 15_000,
    'tier_limit_bytes{tier=ram}': 50_000,
    'tier_bytes{tier=ssd}': 10_000,
    'tier_moves_total{tier=gpu,act=load,outcome=ok}': 1,
    'tier_moves_total{tier=ssd,act=load,outcome=ok}': 1,
    'tier_moves_total{tier=ssd,act=load,outcome=failed}': 1,
    'model_load_seconds_count{phase=download}': 1,
    'model_load_seconds_count{phase=engine}': 1,
    'model_load_seconds_count{phase=warm_up}': 1,
    'model_wait_seconds_count{outcome=loaded}': 1,
    'model_wait_seconds_count{outcome=refused}': 1,
    model_download_bytes_total: 10_000,
    'model_download_failures_total{reason=source_failed}': 1,
  });
});

it('A11 lists a revision as unloaded until requests find it loaded', async () => {
  const one = makeRevision();
  const listed: unknown[] = [];
  const { loader, world, waitFor } = await setUp([one], {
    onChange: async () => void listed.push(loader.unloaded().map(({ revision, tier }) => ({ revision, tier }))),
  });
  world.released = { m: { stable: one.digest } };
  await loader.refresh();
  await waitFor(one);
  await expect.poll(() => loader.unloaded(), patience).toEqual([]);
  expect(listed).toEqual([[{ revision: one.digest, tier: 'ssd' }]]);
});

it('A11 ends the wait of a request that is given up', async () => {
  const one = makeRevision('one');
  const { loader, world, engine } = await setUp([one]);
  engine.onLoad = () => new Promise(() => {});
  world.released = { one: { stable: one.digest } };
  await loader.refresh();
  const gone = new AbortController();
  const lease = loader.lease('one', one.digest, gone.signal);
  gone.abort();
  expect(await lease).toBeUndefined();
});

it('C7 unloads a revision whose files are swapped while the engine reads them', async () => {
  const one = makeRevision();
  const { loader, world, engine, folder, waitFor } = await setUp([one]);
  const file = path.join(folder, nameOf(one), '1/model.onnx');
  let isFirst = true;
  engine.onLoad = async () => {
    if (isFirst) {
      await promises.chmod(file, 0o600);
      await promises.writeFile(file, 'another network');
    }
    isFirst = false;
    return undefined;
  };
  world.released = { m: { stable: one.digest } };
  await loader.refresh();
  await expect
    .poll(() => loader.failures(), patience)
    .toEqual([{ model: 'm', reason: 'its files changed while it was loaded' }]);
  expect([loader.served(), engine.models.size]).toEqual([[], 0]);
  world.now += 60_000;
  await loader.refresh();
  await waitFor(one);
  expect(loader.failures()).toEqual([]);
});

it('repeats a failed load with back-off and serves the others', async () => {
  const [bad, good] = [makeRevision('bad'), makeRevision('good')];
  const { loader, world, engine, waitFor } = await setUp([bad, good]);
  engine.onLoad = async (model) => (model === nameOf(bad) ? 'no such operator' : undefined);
  world.released = { bad: { stable: bad.digest }, good: { stable: good.digest } };
  await loader.refresh();
  await waitFor(good);
  await expect.poll(() => loader.failures(), patience).toEqual([{ model: 'bad', reason: 'no such operator' }]);
  const loads = () => engine.calls.filter((call) => call === `+${nameOf(bad)}`).length;
  await loader.refresh();
  await loader.settled;
  expect(loads()).toBe(1);
  world.now += 60_000;
  await loader.refresh();
  await expect.poll(loads, patience).toBe(2);
});

it('loads again what an engine lost with its process', async () => {
  const one = makeRevision();
  const { loader, world, engine, waitFor } = await setUp([one]);
  world.released = { m: { stable: one.digest } };
  await loader.refresh();
  await waitFor(one);
  engine.models.clear();
  await loader.refresh();
  await expect.poll(() => engine.calls.length, patience).toBe(2);
  await waitFor(one);
});

it('T6 serves the mounted repository until the release names a revision', async () => {
  const [mounted, released] = [makeRevision(), makeRevision()];
  const { loader, world, waitFor } = await setUp([released]);
  world.mounted = [mounted];
  await loader.refresh();
  await waitFor(mounted);
  // The mounted one continues until the release has a former revision of its own.
  world.released = { m: { stable: released.digest } };
  await loader.refresh();
  await waitFor(released, mounted);
  world.released = { m: { stable: released.digest, before: released.digest } };
  await loader.refresh();
  world.now += RELEASE_GRACE_MS;
  await loader.refresh();
  await waitFor(released);
});

it('T6 fetches a released revision that the mounted repository lost', async () => {
  const one = makeRevision();
  const { loader, world } = await setUp([one]);
  world.mounted = [{ ...one, source: createSource([]).source }];
  world.released = { m: { stable: one.digest } };
  const look = async () => {
    world.now += 60_000;
    await loader.refresh();
    return loader.served().length;
  };
  await expect.poll(look, patience).toBe(1);
});

it('names the reason while the model store lacks a revision', async () => {
  const { loader, world } = await setUp([]);
  world.released = { m: { stable: `sha256:${'1'.repeat(64)}` } };
  await loader.refresh();
  expect(loader.failures()).toEqual([{ model: 'm', reason: 'the store lacks it' }]);
  await loader.settled;
});

it('U4 loads and warms up a text model once, without a sequence', async () => {
  const { engine, lengths } = createTextEngine();
  const model = textModel('whisper', 0.8);
  expect(loadNames(model)).toEqual(['whisper']);
  expect(await warmUp(engine, model)).toBeUndefined();
  expect(lengths).toEqual([1]);
});

it('A11 unloads what a former process left before it loads', async () => {
  const one = makeRevision();
  const { loader, world, engine, waitFor } = await setUp([one]);
  engine.models.set('m.0123456789ab', { is: 'ready' }).set('reference-en', { is: 'ready' });
  world.released = { m: { stable: one.digest } };
  await loader.refresh();
  await waitFor(one);
  expect(engine.calls).toEqual(['-m.0123456789ab', `+${nameOf(one)}`]);
});

it('A11 serves a revision that the engine did not unload, and tries again', async () => {
  const [stable, canary] = [makeRevision(), makeRevision()];
  const { loader, world, engine, waitFor } = await setUp([stable, canary]);
  world.released = { m: { stable: stable.digest, canary: { revision: canary.digest, share: 0.1 } } };
  await loader.refresh();
  await waitFor(stable, canary);
  engine.onUnload = async () => 'engine ECONNRESET';
  world.released = { m: { stable: stable.digest } };
  await loader.refresh();
  world.now += RELEASE_GRACE_MS;
  await loader.refresh();
  await expect.poll(() => loader.failures(), patience).toEqual([{ model: 'm', reason: 'engine ECONNRESET' }]);
  expect(loader.served()).toHaveLength(2);
  engine.onUnload = async () => undefined;
  world.now += 60_000;
  await loader.refresh();
  await waitFor(stable);
});

it('A16 gives a lease only when requests find the model', async () => {
  const one = makeRevision();
  const [found, finish] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const onChange = () => {
    found.resolve();
    return finish.promise;
  };
  const { loader, world } = await setUp([one], { onChange });
  world.released = { m: { stable: one.digest } };
  await loader.refresh();
  await found.promise;
  const order: string[] = [];
  const lease = loader.lease('m', one.digest, never).then(() => order.push('lease'));
  await Promise.resolve();
  order.push('found');
  finish.resolve();
  await lease;
  expect(order).toEqual(['found', 'lease']);
});

it('A11 loads a withdrawn revision no more, however many requests it had', async () => {
  const [stable, canary] = [makeRevision(), makeRevision()];
  const { loader, world, engine, waitFor } = await setUp([stable, canary]);
  world.released = { m: { stable: stable.digest, canary: { revision: canary.digest, share: 0.5 } } };
  await loader.refresh();
  await waitFor(stable, canary);
  for (let requests = 0; requests < 100; requests += 1) (await loader.lease('m', canary.digest, never))?.release();
  world.released = { m: { stable: stable.digest } };
  await loader.refresh();
  world.now += RELEASE_GRACE_MS;
  await loader.refresh();
  await waitFor(stable);
  await loader.refresh();
  expect(engine.calls.filter((call) => call === `+${nameOf(canary)}`)).toHaveLength(1);
  expect(await loader.lease('m', canary.digest, never)).toBeUndefined();
});

it('A11 refuses requests for a revision whose load has failed', async () => {
  const [one, other] = [makeRevision('one'), makeRevision('other')];
  const { loader, world, engine } = await setUp([one, other], { bytes: { engine: 15_000, ram: 1e9, ssd: 1e9 } });
  engine.onLoad = async () => 'no such operator';
  world.released = { one: { stable: one.digest }, other: { stable: other.digest } };
  await loader.refresh();
  expect(await loader.lease('one', one.digest, never)).toBeUndefined();
  expect(loader.failures()).toEqual([{ model: 'one', reason: 'no such operator' }]);
  expect(await loader.lease('one', one.digest, never)).toBeUndefined();
  expect(engine.calls.filter((call) => call.startsWith('+'))).toHaveLength(1);
  // Callers read that it is busy, not that it does not exist.
  expect(loader.unloaded()).toMatchObject([{ name: 'one', tier: 'blob' }, { name: 'other' }]);
  engine.onLoad = async () => undefined;
  world.now += 60_000;
  (await loader.lease('one', one.digest, never))?.release();
  expect(loader.served()).toHaveLength(1);
});

it('A11 deletes the copies of a revision that cannot be served', async () => {
  const one = makeRevision();
  const { loader, world, folder } = await setUp([one], {
    serve: () => Promise.reject(new Error('it has no parameters of the agent')),
  });
  world.released = { m: { stable: one.digest } };
  await loader.refresh();
  await expect
    .poll(() => loader.failures(), patience)
    .toEqual([{ model: 'm', reason: 'it has no parameters of the agent' }]);
  expect(await promises.readdir(folder)).toEqual([]);
});

it('A16 deletes the copies of a former revision that an engine lost', async () => {
  const [old, fresh] = [makeRevision(), makeRevision()];
  const { loader, world, engine, folder, waitFor } = await setUp([old, fresh]);
  world.released = { m: { stable: old.digest } };
  await loader.refresh();
  await waitFor(old);
  world.released = { m: { stable: fresh.digest } };
  await loader.refresh();
  await waitFor(old, fresh);
  engine.models.clear();
  await loader.refresh();
  await waitFor(fresh);
  world.now += RELEASE_GRACE_MS;
  await loader.refresh();
  await expect.poll(() => promises.readdir(folder), patience).toEqual([nameOf(fresh)]);
});

it('A16 follows the release while the model store does not answer', async () => {
  const [one, other] = [makeRevision('one'), makeRevision('other')];
  const fetchReleased = (model: string) =>
    model === 'one' ? Promise.resolve(one) : new Promise<typeof other>(() => {});
  const { loader, world } = await setUp([], { fetchReleased });
  world.released = { one: { stable: one.digest }, other: { stable: other.digest } };
  const look = () => {
    world.now += RELEASE_GRACE_MS;
    void loader.refresh();
    return loader.served().length;
  };
  await expect.poll(look, patience).toBe(1);
  world.released = { other: { stable: other.digest } };
  await expect.poll(look, patience).toBe(0);
});

it('A11 unloads no victim that was leased since the decision', async () => {
  const [one, two, large] = [makeRevision('one'), makeRevision('two'), makeRevision('large', 20_000)];
  const bytes = { engine: 31_000, ram: 1e9, ssd: 1e9 };
  const { loader, world, engine, waitFor } = await setUp([one, two, large], { bytes });
  engine.bytes = 15_000;
  world.released = { one: { stable: one.digest }, two: { stable: two.digest }, large: { stable: large.digest } };
  await loader.refresh();
  for (const known of [one, two])
    for (const _ of [1, 2]) (await loader.lease(known.description.name, known.digest, never))?.release();
  await waitFor(one, two);
  const second = Promise.withResolvers<string>();
  engine.onUnload = async (name) => {
    const left = name === nameOf(one) ? two : one;
    engine.onUnload = async () => undefined;
    await loader.lease(left.description.name, left.digest, never);
    second.resolve(`-${nameOf(left)}`);
    return undefined;
  };
  const waits = new AbortController();
  const lease = loader.lease('large', large.digest, waits.signal);
  const leased = await second.promise;
  await loader.refresh();
  expect(engine.calls).not.toContain(leased);
  waits.abort();
  await lease;
});

it('A11 evicts no file of a revision that is being fetched', async () => {
  const one = makeRevision('m', 10_000, 2);
  const left = makeFile();
  // The files of the revision are the first to go.
  const order: StoreOptions['order'] = (files) => [...files].sort((file) => (file.digest === left.digest ? 1 : -1));
  const { loader, world, store, waitFor } = await setUp([one], {}, { bytes: 25_000, order });
  const former = await store.fetch(left, createSource([left]).source);
  if (former.ok) former.value.release();
  world.released = { m: { stable: one.digest } };
  await loader.refresh();
  await waitFor(one);
  const stored = (await store.list()).map(({ digest }) => digest);
  expect(stored.sort()).toEqual(one.files.map(({ digest }) => digest).sort());
});
