// Writers of logs that tick: who may write, what they say, and what they do when a clock is wrong.
import { beforeEach, describe, expect, it } from 'vitest';
import type { LogLine } from '../../../functions/audit/context/log-context.ts';
import { LOG_TICK_MS } from '../../../functions/audit/limits.ts';
import { openLogKeys } from '../../../functions/audit/log/log-keys.ts';
import { divergedName, lockName, stateName } from '../../../functions/audit/log/log-names.ts';
import { encodeState, LOG_STATE_BYTES, type LogState, readState } from '../../../functions/audit/log/log-state.ts';
import type { LogStore } from '../../../functions/audit/log/log-store.ts';
import { noticing } from '../../../functions/audit/log/notifying-store.ts';
import { listYears } from '../../../functions/audit/read/list-years.ts';
import { readLogHealth } from '../../../functions/audit/read/read-log-health.ts';
import { LOG_LEASE_RENEW_MS, LOG_LEASE_S, openTicker } from '../../../functions/audit/sequencer/on-tick.ts';
import { LOG_CLOCK_MS } from '../../../shared/audit/limits.ts';
import { MemoryStore } from '../../fake/log-store.ts';

const SUMMER = Date.UTC(2026, 5, 1);
const MINUTE = LOG_TICK_MS;
const HOUR = 60 * MINUTE;
const read = await openLogKeys({ AUDIT_KEY: Buffer.alloc(32, 1).toString('base64') });
if (!read) throw new Error('no keys');
const keys = read;

/** One storage with leases, and the time that it has. */
class Shared {
  readonly files = new MemoryStore();
  now = SUMMER;
  #lease: { readonly id: string; readonly until: number } | undefined;
  #ids = 0;
  readonly held: string[] = [];

  readonly leases = {
    hold: async (name: string, seconds: number, id: string | undefined) => {
      expect(name).toBe(lockName('eu'));
      const free = !this.#lease || this.now >= this.#lease.until;
      if (!free && this.#lease?.id !== id) return undefined;
      this.#ids += free ? 1 : 0;
      this.#lease = { id: free ? `lease-${this.#ids}` : (id ?? ''), until: this.now + seconds * 1_000 };
      this.held.push(this.#lease.id);
      return this.#lease.id;
    },
    release: async (_name: string, id: string) => {
      if (this.#lease?.id === id) this.#lease = undefined;
    },
  };

  get state(): LogState {
    return readState(this.files.area('state').get(stateName('eu'))?.bytes ?? new Uint8Array());
  }
}

let shared: Shared;
beforeEach(() => {
  shared = new Shared();
});

/** A process that ticks, with a clock that is off by `skew`. */
function ticker(skew: () => number = () => 0, more: Partial<LogStore> = {}) {
  const { files, leases } = shared;
  const lines: LogLine[] = [];
  const store: LogStore = {
    read: (...given) => files.read(...given),
    create: (...given) => files.create(...given),
    replace: (...given) => files.replace(...given),
    list: (...given) => files.list(...given),
    remove: (...given) => files.remove(...given),
    clock: () => shared.now,
    ...more,
  };
  const now = () => shared.now + skew();
  const desk = {
    ...keys,
    zones: ['eu'],
    base: 'audit.example',
    settings: {},
    now,
    log: (line: LogLine) => lines.push(line),
  };
  const ticking = openTicker({ ...desk, store: noticing({ ...store, ...leases }) } as never);
  return { ...ticking, lines, whats: () => lines.map(({ what }) => what) };
}

async function pass(ms: number, ...tickers: { tick(): Promise<void> }[]): Promise<void> {
  shared.now += ms;
  for (const one of tickers) await one.tick();
}

describe('C9 two writers that tick', () => {
  it('one process holds the lease; the other takes it after release or expiry', async () => {
    const [first, second] = [ticker(), ticker()];
    for (let minute = 0; minute < 3; minute += 1) await pass(MINUTE, first, second);
    expect(first.whats()).toContain('committed');
    expect(second.lines).toEqual([]);
    expect(new Set(shared.held).size).toBeGreaterThan(0);
    await first.release();
    await pass(MINUTE, second, first);
    expect(second.whats()).toEqual(['committed']);
    const told = first.lines.length;
    // A producer that vanishes is succeeded when its lease ends.
    await pass(LOG_LEASE_S * 1_000 - 1, first);
    expect(first.lines.length).toBe(told);
    await pass(MINUTE, first, second);
    expect([first.lines.length, second.whats()]).toEqual([told + 1, ['committed']]);
  });

  it('a lease is renewed in time, also after the clock went back', async () => {
    let skew = 0;
    const first = ticker(() => skew);
    await pass(MINUTE, first);
    const held = shared.held.length;
    await pass(LOG_LEASE_RENEW_MS - 1_000, first);
    expect(shared.held.length).toBe(held);
    await pass(2_000, first);
    expect(shared.held.length).toBe(held + 1);
    skew = -10_000;
    await pass(1_000, first);
    expect(shared.held.slice(held)).toEqual(['lease-1', 'lease-1']);
    await pass(LOG_LEASE_RENEW_MS - 1_000, first);
    expect(shared.held.length).toBe(held + 2);
  });

  it('a leaseholder that loses every commit for two ticks reports it', async () => {
    const beaten = ticker(() => 0, { replace: async () => false });
    await pass(MINUTE, beaten);
    for (let ticks = 0; ticks < 3; ticks += 1) await pass(MINUTE, beaten);
    expect(beaten.whats().filter((what) => what === 'beaten')).toHaveLength(2);
  });

  it('a full log and a changed one are each reported once a minute', async () => {
    const writer = ticker();
    await pass(MINUTE, writer);
    const upTo = Object.fromEntries(
      Array.from({ length: 11 }, (_, at) => [`${at}`.padEnd(LOG_STATE_BYTES / 10, 'x'), 1]),
    );
    const { version = '' } = shared.files.area('state').get(stateName('eu')) ?? {};
    await shared.files.replace('state', stateName('eu'), encodeState({ ...shared.state, upTo }), version);
    for (let seconds = 0; seconds < 60; seconds += 10) await pass(10_000, writer);
    expect(writer.whats().filter((what) => what === 'full')).toHaveLength(1);
    const mark = JSON.stringify({ v: 1, origin: 'x', at: 1, witness: 'w1', why: 'shows more' });
    await shared.files.create('state', divergedName('eu'), new TextEncoder().encode(mark));
    writer.lines.length = 0;
    for (let seconds = 0; seconds < 120; seconds += 10) await pass(10_000, writer);
    expect(writer.lines).toEqual(Array(2).fill({ what: 'diverged', zone: 'eu', detail: 'stopped: w1 shows more' }));
  });
});

describe('C9 a writer with a wrong clock', () => {
  it.each([
    ['in another century', Date.UTC(2099, 0, 1) - SUMMER],
    ['a little more than a minute ahead', LOG_CLOCK_MS + 1_000],
    ['an hour behind', -HOUR],
  ])('%s: writes nothing, says so once a minute, and the others go on', async (_what, skew) => {
    const [good, wrong] = [ticker(), ticker(() => skew)];
    await pass(0, wrong);
    expect(shared.files.area('state').size).toBe(0);
    await wrong.release();
    await pass(MINUTE, good);
    await good.release();
    const before = shared.state;
    for (let seconds = 0; seconds < 120; seconds += 10) await pass(10_000, wrong);
    expect(shared.state).toEqual(before);
    const off = `the functions' clock is ${Math.abs(Math.round(skew / 1_000))} s ${skew > 0 ? 'ahead of' : 'behind'} that of storage`;
    expect(wrong.lines).toEqual(Array(3).fill({ what: 'clock', zone: 'eu', detail: off }));
    await wrong.release();
    await pass(MINUTE, good);
    expect(good.whats()).toEqual(['committed', 'committed']);
    expect((await listYears(shared.files, 'eu')).map(({ year }) => year)).toEqual([2026]);
  });

  it('a log ahead of every clock reports it, and resumes at that time', async () => {
    const silent = { clock: () => undefined };
    const wrong = ticker(() => HOUR, silent);
    await pass(0, wrong);
    await pass(MINUTE, wrong);
    await wrong.release();
    const good = ticker();
    for (let seconds = 0; seconds < 60; seconds += 10) await pass(10_000, good);
    expect(good.lines).toEqual([
      { what: 'clock', zone: 'eu', detail: expect.stringMatching(/^the last entry is \d+ s ahead$/) },
    ]);
    const health = await readLogHealth({ ...keys, store: shared.files, now: () => shared.now, settings: {} }, 'eu');
    expect(health.at - (health.log?.last ?? 0)).toBeLessThan(-LOG_CLOCK_MS);
    await pass(HOUR, good);
    expect(good.whats()).toEqual(['clock', 'committed']);
  });

  it('without a storage clock a log still advances one year at a time', async () => {
    const writer = ticker(() => 0, { clock: () => undefined });
    await pass(MINUTE, writer);
    shared.now = Date.UTC(2028, 0, 1);
    for (let ticks = 0; ticks < 3; ticks += 1) await pass(MINUTE, writer);
    expect((await listYears(shared.files, 'eu')).map(({ year, closed }) => [year, closed])).toEqual([
      [2028, false],
      [2027, true],
      [2026, true],
    ]);
  });
});
