// The log on the real emulator behind a lock, on bad days: requests that fail, requests that fail and were done all the
// same, and writers that die anywhere.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BlobLogStore, openBlobLogStore } from '../../../functions/audit/log/blob-log-store.ts';
import { openP256Key, p256Signer } from '../../../shared/audit/ecdsa.ts';
import { openSigningKey } from '../../../shared/audit/note.ts';
import { randomOf } from '../../fake/random.ts';
import { firstSeed, seeds } from '../../seeds.ts';
import { chaos } from './chaos.ts';
import { findWrong, mortal, Sender, type SignersOf, writerOf } from './emulated-log.ts';
import { type Emulator, type Fate, startEmulator } from './emulator.ts';

let emulator: Emulator;
let store: BlobLogStore;
let direct: BlobLogStore;
let signers: SignersOf;
beforeAll(async () => {
  emulator = await startEmulator();
  store = openBlobLogStore(emulator.connection);
  direct = openBlobLogStore(emulator.direct);
  await direct.ensure(AbortSignal.timeout(5_000));
  const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
  const second = await openP256Key(JSON.stringify(await crypto.subtle.exportKey('jwk', pair.privateKey)));
  if (!second) throw new Error('no key');
  const first = await openSigningKey(new Uint8Array(32).fill(1));
  signers = (name) => [first.signer(name), p256Signer(second, name)];
});
afterAll(() => emulator?.stop());

describe('C9 under a lock of years', () => {
  it('a locked blob is neither overwritten nor deleted, and the log never tries', async () => {
    const bytes = new TextEncoder().encode('x');
    expect(await store.create('log', 'locked/a', bytes)).toBe(true);
    const kept = await store.read('log', 'locked/a');
    expect(await store.create('log', 'locked/a', bytes)).toBe(false);
    expect(await store.replace('log', 'locked/a', bytes, kept?.version ?? '')).toBe(false);
    await expect(store.remove('log', 'locked/a')).rejects.toMatchObject({ code: 'BlobImmutableDueToPolicy' });
    expect(emulator.refused).toEqual(Array(2).fill('PUT audit-log/locked/a').concat('DELETE audit-log/locked/a'));
    emulator.refused.length = 0;
    const sender = new Sender('plain', 't', 300);
    const writer = writerOf(store, 'plain', signers);
    for (let from = 1; from <= 300; from += 150) {
      await sender.send(store, from, from + 149);
      await writer.round();
      await writer.round();
    }
    expect(await findWrong(direct, 'plain', [sender])).toEqual([]);
    expect(emulator.refused).toEqual([]);
  });
});

/** Sunlight's places; its lock is the swap of our state, its staging our write-ahead record. */
const places: [string, RegExp][] = [
  ['lock', /^PUT audit-state\/Z\/state$/],
  ['checkpoint', /^PUT audit-state\/Z\/2026\/checkpoint$/],
  ['staging', /^PUT audit-log\/Z\/2026\/wal\//],
  ['data tile', /^PUT audit-log\/Z\/2026\/tile\/entries\//],
  ['level-0 tile', /^PUT audit-log\/Z\/2026\/tile\/0\//],
];
const cases = places.flatMap(([name, pattern]) =>
  (['failed', 'failed but done'] as const).map((fate) => ({ name, pattern, fate })),
);

describe('C9 Sunlight’s fault matrix on the blob adapter', () => {
  beforeAll(() => {
    emulator.decide = decide;
  });
  afterAll(() => {
    emulator.decide = () => 'done';
  });

  it.concurrent.each(cases)(
    '$name $fate, across a full tile: the log goes on',
    {
      // Ten at once share one emulator, and each waits for three tries of the client library.
      timeout: 30_000,
    },
    async ({ name, pattern, fate }) => {
      const zone = `m-${name.replaceAll(' ', '-')}-${fate.replaceAll(' ', '-')}`;
      const sender = new Sender(zone, 't', 270);
      const writer = writerOf(
        mortal(store, () => undefined),
        zone,
        signers,
      );
      await sender.send(store, 1, 240);
      for (let rounds = 0; rounds < 2; rounds += 1) await writer.round();
      await sender.send(store, 241, 270);
      // Every try of the client library, until the call has failed for good.
      const fault = { zone, pattern, fate, left: 3 };
      bad.push(fault);
      await expect(writer.round(), zone).rejects.toThrow();
      expect(fault.left, zone).toBe(0);
      const next = writerOf(store, zone, signers);
      for (let rounds = 0; rounds < 2; rounds += 1) await next.round();
      expect(await sender.acknowledged(direct)).toBe(270);
      expect(await findWrong(direct, zone, [sender])).toEqual([]);
    },
  );

  const bad: { zone: string; pattern: RegExp; fate: Fate; left: number }[] = [];
  const decide = (what: string): Fate => {
    const one = bad.find(({ zone, pattern, left }) => left > 0 && pattern.test(what.replace(`/${zone}/`, '/Z/')));
    if (!one) return 'done';
    one.left -= 1;
    return one.fate;
  };
});

// Few where developers wait, as many as were asked for where machines do.
const stories = seeds >= 10_000 ? 24 : 2;
const AT_ONCE = 2;

describe('C9 C12 several writers and a bad network', () => {
  it(`nothing is lost, nothing is there twice: ${stories} stories`, { timeout: 120_000 }, async () => {
    const random = randomOf(firstSeed);
    emulator.decide = () => {
      const chance = random();
      return chance < 0.004 ? 'failed' : chance < 0.008 ? 'failed but done' : 'done';
    };
    let died = 0;
    for (let seed = firstSeed; seed < firstSeed + stories; seed += AT_ONCE) {
      const some = Array.from({ length: AT_ONCE }, (_, at) => seed + at);
      const told = await Promise.all(some.map((one) => chaos({ store, direct, signers }, one)));
      for (const [at, { problems }] of told.entries()) expect(problems, `SEED=${seed + at}`).toEqual([]);
      died += told.reduce((sum, one) => sum + one.died, 0);
    }
    console.log(`${stories} stories from SEED=${firstSeed}: ${died} writers died, nothing was lost`);
    expect(died).toBeGreaterThan(0);
    expect(emulator.refused.filter((what) => what.startsWith('DELETE'))).toEqual([]);
  });
});
