import { describe, expect, it } from 'vitest';
import { type Received, receive } from '../../../functions/audit/intake/intake.ts';
import { LOG_TICK_MS, PRODUCER_GONE_MS } from '../../../functions/audit/limits.ts';
import { encodeState, freshState, type LogState, readState } from '../../../functions/audit/log/log-state.ts';
import {
  LifeWatch,
  OUTBOX_ENDED_MS,
  OUTBOX_FORGOTTEN_MS,
  PRODUCER_SILENT_MS,
} from '../../../functions/audit/sequencer/lives.ts';
import { AUDIT_LATE_MS, sequence } from '../../../functions/audit/sequencer/sequence.ts';
import { Sequencer } from '../../../functions/audit/sequencer/sequencer.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import { readLeaf } from '../../../shared/audit/leaf.ts';
import { MemoryStore, readStoredLog } from '../../fake/log-store.ts';

const epochOf = (n: number) => `2f7c9a30-7c3f-4f1e-8f0e-${String(n).padStart(12, '0')}`;
const idOf = (n: number) => eventId(n, new Uint8Array(10));
const GATE = 'gate/dev/eu';

interface Sent {
  readonly type: string;
  readonly id?: string;
  readonly [member: string]: unknown;
}
let numbers = 1_000;
const nextId = () => {
  numbers += 1;
  return idOf(numbers);
};
async function from(producer: string, epoch: string, first: number, said: readonly Sent[], at = 0): Promise<Received> {
  const events = said.map((one) => ({ v: 1, id: nextId(), at: 1, producer: 'edge', ...one }));
  const rows = [{ to: first + events.length - 1, t: 2, events }];
  const one = await receive({ v: 1, producer, epoch, oldest: 1, rows }, at, async () => 'x');
  if (!one) throw new Error('nothing received');
  return one;
}

/** A log in memory of which only the state counts. */
class Log {
  state: LogState = { ...freshState('audit.example/eu/2026', 2026, undefined), size: 1 };
  now = 10;
  take(some: readonly Received[], isKnown: (id: string) => boolean = () => false): Record<string, unknown>[] {
    this.now += 1;
    const waiting = some.map((received, at) => ({ name: String(at), received }));
    const next = sequence(this.state, waiting, { now: this.now, newId: nextId, isKnown });
    const { upTo, tseq, lives, late, entries } = next;
    const size = this.state.size + entries.length;
    const changed = entries.length > 0 && { size, last: this.now, upTo, tseq, lives, late };
    this.state = readState(encodeState({ ...this.state, ...changed }));
    return entries.map((entry) => readLeaf(entry) as unknown as Record<string, unknown>);
  }
  get outboxes(): string[] {
    return Object.keys(this.state.upTo).filter((one) => !one.startsWith('log '));
  }
}

describe('C9 lives of producers', () => {
  it('an ended life is dropped once the next began and no delivery is pending', async () => {
    const log = new Log();
    log.take([await from(GATE, epochOf(1), 1, [{ type: 'producer.open' }, { type: 'producer.close', last: 2 }])]);
    log.now += OUTBOX_ENDED_MS;
    log.take([await from('roster/eu', epochOf(9), 1, [{ type: 'producer.open' }])]);
    // Its outbox may not have heard that the log has all of it.
    expect(log.outboxes).toContain(`${GATE} ${epochOf(1)}`);
    log.take([await from(GATE, epochOf(2), 1, [{ type: 'producer.open' }])]);
    expect(log.outboxes).not.toContain(`${GATE} ${epochOf(1)}`);
    expect(log.outboxes).toEqual([`roster/eu ${epochOf(9)}`, `${GATE} ${epochOf(2)}`]);
  });

  it('a broken-off life leaves a gap leaf when the next begins', async () => {
    const log = new Log();
    log.take([await from(GATE, epochOf(1), 1, [{ type: 'producer.open' }, { type: 'route' }])]);
    const leaves = log.take([await from(GATE, epochOf(2), 1, [{ type: 'producer.open' }])]);
    expect(leaves).toMatchObject([
      { type: 'producer.gap', outbox: GATE, epoch: epochOf(1), from: 3 },
      { type: 'producer.open', ep: epochOf(2) },
    ]);
    // Processes of the functions live side by side, and tell of each other.
    log.take([await from('functions/eu', epochOf(3), 1, [{ type: 'producer.open' }])]);
    const more = log.take([
      await from('functions/eu', epochOf(4), 1, [{ type: 'producer.open', previous: epochOf(3), previousLast: 1 }]),
    ]);
    expect(more.map(({ type }) => type)).toEqual(['producer.open']);
    expect(log.state.lives?.[`functions/eu ${epochOf(3)}`]).toBeLessThan(0);
  });

  it('an open silent life is reported; an ended or active one is not', async () => {
    const log = new Log();
    const watch = new LifeWatch();
    log.take([
      await from(GATE, epochOf(1), 1, [{ type: 'producer.open' }]),
      await from('gate/other/eu', epochOf(2), 1, [{ type: 'producer.open' }]),
      await from('gate/old/eu', epochOf(3), 1, [{ type: 'route' }]),
    ]);
    expect(watch.silent(log.state, 0)).toBe(0);
    log.take([await from('gate/other/eu', epochOf(2), 2, [{ type: 'producer.close', last: 2 }])]);
    expect(watch.silent(log.state, PRODUCER_SILENT_MS)).toBe(1);
    log.take([await from(GATE, epochOf(1), 2, [{ type: 'route' }])]);
    expect(watch.silent(log.state, PRODUCER_SILENT_MS + 1)).toBe(0);
    expect(watch.silent(log.state, 2 * PRODUCER_SILENT_MS)).toBe(0);
    expect(watch.silent(log.state, 2 * PRODUCER_SILENT_MS + 1)).toBe(1);
  });
});

describe('C9 processes of the functions that are gone without a word', () => {
  const US = 'functions/eu';
  const beat = async (log: Log) => log.take([await from('roster/eu', epochOf(8), 1, [{ type: 'producer.open' }])]);

  it('end with one leaf and are dropped: crashes do not fill the state', async () => {
    const log = new Log();
    const watch = new LifeWatch();
    for (let crash = 0; crash < 50; crash += 1) {
      log.take([await from(US, epochOf(crash), 1, [{ type: 'producer.open' }, { type: 'route' }])]);
      watch.silent(log.state, log.now);
      log.now += PRODUCER_SILENT_MS;
      expect(watch.silent(log.state, log.now)).toBeLessThanOrEqual(2);
    }
    expect(log.outboxes.length).toBeLessThan(8);
    expect(Object.keys(log.state.lives ?? {}).length).toBeLessThan(8);
  });

  it('the leaf names the life and its last number', async () => {
    const log = new Log();
    log.take([await from(US, epochOf(1), 1, [{ type: 'producer.open' }, { type: 'route' }])]);
    log.now += PRODUCER_GONE_MS;
    const leaves = await beat(log);
    expect(leaves).toMatchObject([{}, { type: 'producer.silent', by: 'log', outbox: US, epoch: epochOf(1), last: 2 }]);
    log.now += 10;
    expect(log.take([])).toEqual([]);
  });

  it('a life that resumes continues its numbers and is open again', async () => {
    const log = new Log();
    log.take([await from(US, epochOf(1), 1, [{ type: 'producer.open' }])]);
    log.now += PRODUCER_GONE_MS;
    await beat(log);
    log.now += OUTBOX_ENDED_MS - 10;
    const leaves = log.take([await from(US, epochOf(1), 2, [{ type: 'route' }])]);
    expect(leaves.map(({ type, pseq }) => [type, pseq])).toEqual([['route', 2]]);
    expect(log.state.lives?.[`${US} ${epochOf(1)}`]).toBeGreaterThan(0);
  });

  it('an active life never ends', async () => {
    const log = new Log();
    log.take([await from(US, epochOf(1), 1, [{ type: 'producer.open' }])]);
    for (let n = 2; n < 9; n += 1) {
      log.now += PRODUCER_GONE_MS / 2;
      const leaves = log.take([await from(US, epochOf(1), n, [{ type: 'route' }])]);
      expect(leaves.map(({ type }) => type)).toEqual(['route']);
    }
  });

  it('the last life of a gate is dropped a month after its end', async () => {
    const log = new Log();
    log.take([await from(GATE, epochOf(1), 1, [{ type: 'producer.open' }, { type: 'producer.close', last: 2 }])]);
    log.now += OUTBOX_FORGOTTEN_MS - 10;
    await beat(log);
    expect(log.outboxes).toContain(`${GATE} ${epochOf(1)}`);
    log.now += 10;
    log.take([await from('roster/eu', epochOf(8), 2, [{ type: 'route' }])]);
    expect(log.outboxes).not.toContain(`${GATE} ${epochOf(1)}`);
  });
});

describe('C9 a missing delivery is reported within a minute', () => {
  it('a gap leaves one late leaf, and is filled when its delivery comes', async () => {
    const log = new Log();
    log.take([await from(GATE, epochOf(1), 1, [{ type: 'producer.open' }])]);
    const ahead = await from(GATE, epochOf(1), 3, [{ type: 'route' }], log.now);
    expect(log.take([ahead])).toEqual([]);
    expect(AUDIT_LATE_MS).toBeLessThan(60_000);
    log.now += AUDIT_LATE_MS;
    expect(log.take([ahead])).toMatchObject([
      { type: 'producer.late', outbox: GATE, epoch: epochOf(1), from: 2, to: 2 },
    ]);
    expect(log.take([ahead])).toEqual([]);
    const filled = log.take([ahead, await from(GATE, epochOf(1), 2, [{ type: 'keys' }])]);
    expect(filled.map(({ type, pseq }) => [type, pseq])).toEqual([
      ['keys', 2],
      ['route', 3],
    ]);
    expect(log.state.late).toEqual({});
  });

  it('an idle log writes a tick each minute, a busy one none', async () => {
    const log = new Log();
    log.take([await from(GATE, epochOf(1), 1, [{ type: 'producer.open' }])]);
    log.now += LOG_TICK_MS - 2;
    expect(log.take([])).toEqual([]);
    expect(log.take([])).toMatchObject([{ type: 'log.tick', by: 'log' }]);
    expect(log.take([])).toEqual([]);
  });
});

describe('C9 an event that the functions report twice counts once', () => {
  const event = { type: 'inference.attempt', tenant: 'dev', id: idOf(7) };
  const open = { type: 'producer.open' };

  it.each(['in turn', 'at once'])('%s', async (order) => {
    const log = new Log();
    const [one, two] = [
      await from('functions/eu', epochOf(1), 1, [open, event]),
      await from('functions/eu', epochOf(2), 1, [open, event]),
    ];
    const rounds = order === 'at once' ? [[one, two]] : [[one], [two]];
    const seen = new Set<unknown>();
    const leaves = rounds.flatMap((some) => {
      const added = log.take(some, (id) => seen.has(id));
      for (const { id } of added) seen.add(id);
      return added;
    });
    const ids = leaves.filter(({ id }) => id === idOf(7));
    expect(ids).toHaveLength(1);
    expect(leaves.filter(({ type }) => type === 'event.repeated')).toMatchObject([{ of: idOf(7), pseq: 2 }]);
    expect(log.state.tseq).toEqual({ dev: 1 });
    // No number of either is missing.
    expect([1, 2].map((n) => log.state.upTo[`functions/eu ${epochOf(n)}`])).toEqual([2, 2]);
  });

  it('also when another process has written the first, which is found in the log', async () => {
    const store = new MemoryStore();
    let time = Date.UTC(2026, 5, 1);
    const now = () => {
      time += 5;
      return time;
    };
    const signer = { name: 'n', keyId: new Uint8Array(4), sign: async () => new Uint8Array(64) };
    const writer = () =>
      new Sequencer({
        ...{ store, zone: 'eu', base: 'audit.example', signers: () => [signer] },
        now,
        newId: nextId,
      });
    const put = async (received: Received) =>
      store.create('intake', `eu/${received.producer.slice(0, 5)}`, new TextEncoder().encode(JSON.stringify(received)));
    const settle = async () => {
      const one = writer();
      while ((await one.round()).kind !== 'idle');
    };
    await put(
      await from(GATE, epochOf(1), 1, [open, ...Array.from({ length: 300 }, () => ({ type: 'route' })), event]),
    );
    await settle();
    await put(await from('functions/eu', epochOf(2), 1, [open, event]));
    await settle();
    const { leaves } = readStoredLog(store, 'eu', 2026);
    expect(leaves.filter(({ id }) => id === idOf(7))).toHaveLength(1);
    expect(leaves.at(-1)).toMatchObject({ type: 'event.repeated', of: idOf(7) });
  });
});
