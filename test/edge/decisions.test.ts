import { describe, expect, it } from 'vitest';
import { TOKEN_CACHE_MS, TokenCache } from '../../edge/auth/token-cache.ts';
import { late, type Runtime, within } from '../../edge/clock.ts';
import { CallerBody } from '../../edge/http/caller-body.ts';
import { checkPromise, readHints, readRequestHints } from '../../edge/protocol/hints.ts';
import { ATTEMPTS_MAX } from '../../edge/routing/pick.ts';
import { afterFailure, earn, type Failure, fullBudget, RETRY_BURST, RETRY_SHARE } from '../../edge/routing/retry.ts';
import { sealFor } from '../../edge/routing/setups.ts';
import { readSnapshots, SNAPSHOT_AGE_MS } from '../../edge/routing/snapshot.ts';
import type { Bindings } from '../../edge/settings.ts';
import type { RosterEntry, Snapshot } from '../../shared/pool/heartbeat.ts';
import { SNAPSHOT_STALE_MS } from '../../shared/pool/limits.ts';
import { type Reason, refusals, refuse } from '../../shared/refusal.ts';
import { SEAL_SETUP_MS } from '../../shared/seal/limits.ts';
import { FakeAgent } from '../fake/agent.ts';
import { makeSettings, productionTexts } from '../fake/settings.ts';

const at = (now: { value: number }): Runtime => ({
  now: () => now.value,
  random: () => 0,
  after: () => ({ rings: new Promise<typeof late>(() => {}), cancel: () => {} }),
});

describe('C4 the cache of verified tokens', () => {
  const cache = () => new TokenCache<string>(2);

  it("forgets at the token's end, and never later than its own bound", () => {
    const short = cache();
    short.put('k', 'claims', 10, 0);
    expect(short.get('k', 9_999)).toBe('claims');
    expect(short.get('k', 10_000)).toBeUndefined();
    const long = cache();
    long.put('k', 'claims', 1_000_000, 0);
    expect(long.get('k', TOKEN_CACHE_MS - 1)).toBe('claims');
    expect(long.get('k', TOKEN_CACHE_MS)).toBeUndefined();
  });

  it('is bounded: the oldest goes', () => {
    const full = cache();
    for (const key of ['a', 'b', 'c']) full.put(key, key, 100, 0);
    expect(full.size).toBe(2);
    expect(full.get('a', 1)).toBeUndefined();
    expect(full.get('c', 1)).toBe('c');
  });

  it('keeps nothing that has expired already', () => {
    const late = cache();
    late.put('k', 'claims', 1, 2_000);
    expect(late.size).toBe(0);
  });
});

describe('C6 the decision to try another agent', () => {
  const failure = (reason: Reason, change: Partial<Failure> = {}): Failure => ({
    refusal: refuse(reason),
    made: 1,
    remaining: 1,
    replayable: true,
    delivered: false,
    realtime: false,
    ...change,
  });

  it.each(['pool_lost', 'pool_busy', 'misdirected', 'seal_broken', 'attestation_invalid', 'engine_failed'] as const)(
    'after %s',
    (reason) => {
      expect(afterFailure(failure(reason), fullBudget).again).toBe(true);
    },
  );

  it('A5 a sequence is looked for elsewhere when the budget is used up', () => {
    const spent = { left: 0 };
    expect(afterFailure(failure('sequence_unknown'), spent)).toEqual({ again: true, budget: spent });
    expect(afterFailure(failure('pool_lost'), spent).again).toBe(false);
  });

  it('A2 realtime speech leaves a full agent when the budget is used up', () => {
    const spent = { left: 0 };
    expect(afterFailure(failure('pool_busy', { realtime: true }), spent)).toEqual({ again: true, budget: spent });
    expect(afterFailure(failure('pool_lost', { realtime: true }), spent).again).toBe(false);
    expect(afterFailure(failure('pool_busy'), spent).again).toBe(false);
  });

  it('never after a refusal that is about the request', () => {
    for (const reason of Object.keys(refusals) as Reason[]) {
      const { status } = refusals[reason];
      // A sequence that one agent does not have another may.
      if (reason === 'sequence_unknown' || ['misdirected', 'seal_broken', 'attestation_invalid'].includes(reason))
        continue;
      if (status >= 500) continue;
      expect(afterFailure(failure(reason), fullBudget).again, reason).toBe(false);
    }
  });

  it.each([
    ['no other agent is left', { remaining: 0 }],
    ['enough attempts were made', { made: ATTEMPTS_MAX }],
    ['the body is gone', { replayable: false }],
    ['the caller has seen an answer', { delivered: true }],
  ])('not when %s', (_, change) => {
    expect(afterFailure(failure('pool_lost', change), fullBudget)).toMatchObject({
      again: false,
      refusal: { reason: 'pool_lost' },
    });
  });

  it('refusals between edge and agent reach a caller as pool lost', () => {
    for (const reason of [
      'ticket_invalid',
      'ticket_replayed',
      'misdirected',
      'seal_broken',
      'attestation_invalid',
    ] as const) {
      expect(afterFailure(failure(reason, { remaining: 0 }), fullBudget)).toMatchObject({
        refusal: { reason: 'pool_lost' },
      });
    }
  });

  it('retries stay under their share of the requests, whatever fails', () => {
    let budget = fullBudget;
    let retries = 0;
    const requests = 10_000;
    for (let n = 0; n < requests; n += 1) {
      budget = earn(budget);
      const next = afterFailure(failure('pool_lost'), budget);
      if (!next.again) continue;
      retries += 1;
      budget = next.budget;
    }
    expect(retries).toBeLessThanOrEqual(RETRY_BURST + requests * RETRY_SHARE);
    expect(retries).toBeGreaterThan(requests * RETRY_SHARE * 0.9);
  });
});

describe('C10 hints', () => {
  const empty = () => new CallerBody(null, at({ value: 0 }));
  const read = async (query: string, headers: Record<string, string>) => {
    const told = readRequestHints(new URL(`http://edge.test/${query}`), new Headers(headers));
    return told.ok ? readHints(told.value, empty(), { boundary: 'X', byDefault: undefined }) : told;
  };

  it.each([
    ['?model=m&language=en', {}, { model: 'm', language: 'en', class: undefined }],
    ['', { 'x-auricle-model': 'm', 'x-auricle-class': 'batch' }, { model: 'm', language: undefined, class: 'batch' }],
    ['?model=&language=', { 'x-auricle-model': 'h', 'x-auricle-language': 'es' }, { model: 'h', language: 'es' }],
    ['?model=q', { 'x-auricle-model': 'h', 'x-auricle-language': 'auto' }, { model: 'q', language: undefined }],
  ])('%s %j', async (query, headers, hints) => {
    expect(await read(query, headers as unknown as Record<string, string>)).toMatchObject({ ok: true, value: hints });
  });

  it.each([
    ['', {}, 'field_missing'],
    ['?model=Bad Name', {}, 'field_invalid'],
    ['?model=m&language=not a tag', {}, 'field_invalid'],
  ])('%s is refused', async (query, headers, reason) => {
    expect(await read(query, headers)).toMatchObject({ ok: false, refusal: { reason } });
  });

  const promised = { model: 'm', language: 'en', class: undefined };
  it.each([
    [{ model: ['m'], language: ['en'] }, true],
    [{}, true],
    [{ language: ['auto'] }, true],
    [{ language: ['en-US'] }, true],
    [{ language: ['EN'] }, true],
    [{ model: ['other'] }, false],
    [{ language: ['de'] }, false],
  ])('the form %j', (fields, kept) => {
    expect(checkPromise(fields as Record<string, string[]>, promised, (name) => name).ok).toBe(kept);
  });
});

describe('C5 A4 cached registry of an isolate', () => {
  const makeRoster = () => {
    const state = { calls: 0, fails: false };
    const roster = {
      getByName: (zone: string) => ({
        snapshot: async (): Promise<Snapshot> => {
          state.calls += 1;
          if (state.fails) throw new Error('unreachable');
          return { zone, at: state.calls, began: 0, entries: [] };
        },
      }),
    } as unknown as Bindings['ROSTER'];
    return { roster, state };
  };

  it('is refreshed with age, kept while the roster is unreachable, dropped when stale', async () => {
    const { roster, state } = makeRoster();
    const zone = [`zone-${crypto.randomUUID()}`];
    const now = { value: 1_000_000 };
    expect(await readSnapshots(zone, roster, at(now))).toMatchObject([{ at: 1 }]);
    now.value += SNAPSHOT_AGE_MS - 1;
    expect(await readSnapshots(zone, roster, at(now))).toMatchObject([{ at: 1 }]);
    now.value += 1;
    expect(await readSnapshots(zone, roster, at(now))).toMatchObject([{ at: 2 }]);
    state.fails = true;
    now.value += SNAPSHOT_STALE_MS;
    expect(await readSnapshots(zone, roster, at(now))).toMatchObject([{ at: 2 }]);
    now.value += 1;
    expect(await readSnapshots(zone, roster, at(now))).toEqual([]);
  });

  it('during one refresh other requests use the cached list', async () => {
    const { roster, state } = makeRoster();
    const zone = [`zone-${crypto.randomUUID()}`];
    const now = { value: 1_000_000 };
    await readSnapshots(zone, roster, at(now));
    now.value += SNAPSHOT_AGE_MS;
    await Promise.all([1, 2, 3].map(() => readSnapshots(zone, roster, at(now))));
    expect(state.calls).toBe(2);
  });

  it('after a pause, concurrent requests all get the registry', async () => {
    const { roster } = makeRoster();
    const zone = [`zone-${crypto.randomUUID()}`];
    const now = { value: 1_000_000 };
    await readSnapshots(zone, roster, at(now));
    now.value += SNAPSHOT_STALE_MS + 1;
    const known = await Promise.all([1, 2, 3].map(() => readSnapshots(zone, roster, at(now))));
    for (const snapshots of known) expect(snapshots).toMatchObject([{ zone: zone[0] }]);
  });
});

describe('C5 A18 set-ups of seals', () => {
  const entryOf = (agent: FakeAgent): RosterEntry => {
    const hello = agent.hello();
    if (hello.type !== 'hello') throw new Error('not a hello');
    const load = {
      busy: 0,
      queued: { realtime: 0, interactive: 0, default: 0, batch: 0 },
      serviceMs: 0,
      draining: false,
      engineReady: true,
    };
    return { description: hello.description, attestation: agent.attestation, load, heard: 0 };
  };

  it('one serves an agent until it is old or the attestation changes', async () => {
    const entry = entryOf(await FakeAgent.make());
    const settings = makeSettings({});
    const now = Date.now();
    const first = await sealFor(entry, settings, now);
    const again = await sealFor(entry, settings, now + 1_000);
    expect(first.ok && first.value.fresh).toBe(true);
    expect(again.ok && again.value.fresh).toBe(false);
    expect(again.ok && first.ok && again.value.seal === first.value.seal).toBe(true);
    const old = await sealFor(entry, settings, now + SEAL_SETUP_MS);
    expect(old.ok && old.value.fresh).toBe(true);
    const other = { ...entryOf(await FakeAgent.make()), description: entry.description };
    expect(await sealFor(other, settings, now)).toMatchObject({
      ok: false,
      refusal: { reason: 'attestation_invalid' },
    });
  });

  it('none for a self-issued attestation in production', async () => {
    const entry = entryOf(await FakeAgent.make());
    const settings = makeSettings(productionTexts());
    expect(await sealFor(entry, settings, Date.now())).toMatchObject({
      ok: false,
      refusal: { reason: 'attestation_invalid' },
    });
  });
});

describe('C4 settings', () => {
  it.each([
    ['MODE', 'test'],
    ['ZONES', '[]'],
    ['ISSUERS', 'not json'],
    ['ISSUERS', '[{"issuer":"i","audience":"a","jwksUrl":"https://x.test","algorithms":["HS256"]}]'],
    ['ISSUERS', '[{"issuer":"i","audience":"a"}]'],
    ['TICKET_KEY', '{"kty":"EC","crv":"P-256","x":"","y":""}'],
    ['GRANT_KEY', '{"kty":"EC","crv":"P-256","x":"","y":""}'],
  ])('%s=%s is not accepted', (name, value) => {
    expect(() => makeSettings({ [name]: value })).toThrow(/settings/);
  });

  it('no message about settings quotes a secret', () => {
    try {
      makeSettings({ TICKET_KEY: '{"kty":"oct","k":"very-secret"}' });
    } catch (error) {
      expect(String(error)).not.toContain('very-secret');
      return;
    }
    throw new Error('was accepted');
  });
});

describe('waiting', () => {
  it('a late answer is dropped, its error too', async () => {
    const rings: Runtime = {
      ...at({ value: 0 }),
      after: () => ({ rings: Promise.resolve(late), cancel: () => {} }),
    };
    expect(
      await within(
        Promise.reject(new Error('too late')).catch(() => new Promise(() => {})),
        1,
        rings,
      ),
    ).toBe(late);
  });
});
