import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { createEvent } from '../../../edge/ledger/create-event.ts';
import { Outbox } from '../../../edge/ledger/outbox.ts';
import { Rest } from '../../../edge/ledger/rest.ts';
import type { Shipper } from '../../../edge/ledger/ship.ts';
import { DELIVERY_RETRY_MAX_MS } from '../../../edge/ledger/ship.ts';
import { type AuditEvent, auditEvent } from '../../../shared/audit/event.ts';
import { PRODUCER_IDLE_MS } from '../../../shared/audit/limits.ts';

const IDLE = PRODUCER_IDLE_MS;
const event = (): AuditEvent => createEvent({ type: 'gap', lost: 0, from: 0, to: 0 }, 1);

/** In the storage of an object of its own. */
async function inStorage(work: (storage: DurableObjectState['storage']) => Promise<void> | void): Promise<void> {
  const stub = env.GATE.getByName(`rest-${crypto.randomUUID()}/eu`);
  await runInDurableObject(stub as never, async (_gate: unknown, state: DurableObjectState) => {
    await work(state.storage);
    await (state.storage as unknown as { deleteAlarm(): Promise<void> }).deleteAlarm();
  });
}

const typesOf = (outbox: Outbox) =>
  outbox.page(0, 100).rows.map(({ pseq, event: one }) => `${pseq} ${auditEvent.parse(one).type}`);

describe('C9 an outbox says when it begins and when it rests', () => {
  it('opens before its first event, and closes with its last number once shipped', async () => {
    await inStorage(({ sql }) => {
      const outbox = new Outbox(sql, undefined, true);
      expect(outbox.isOpen).toBe(false);
      outbox.add([], 1);
      outbox.add([event()], 1);
      outbox.add([event()], 2);
      expect(typesOf(outbox)).toEqual(['1 producer.open', '2 gap', '3 gap']);
      outbox.rest(3);
      expect(outbox.isOpen).toBe(true);
      outbox.forget(3);
      outbox.rest(4);
      outbox.rest(5);
      expect(outbox.page(0, 9).rows).toMatchObject([{ pseq: 4, event: { type: 'producer.close', last: 4 } }]);
      // Events before the acknowledgement are reported as a new begin; a new object reads that state.
      const again = new Outbox(sql, undefined, true);
      expect(again.isOpen).toBe(false);
      again.add([event()], 6);
      expect(typesOf(again)).toEqual(['4 producer.close', '5 producer.open', '6 gap']);
      expect(again.epoch).toBe(outbox.epoch);
    });
  });

  it('a write that failed has said nothing', async () => {
    await inStorage((storage) => {
      const outbox = new Outbox(storage.sql, undefined, true);
      const failing = () =>
        storage.transactionSync(() => {
          outbox.add([event()], 1);
          throw new Error('disk');
        });
      expect(failing).toThrow('disk');
      outbox.reload();
      outbox.add([event()], 2);
      expect(typesOf(outbox)).toEqual(['1 producer.open', '2 gap']);
    });
  });

  it('reports neither without a log', async () => {
    await inStorage(({ sql }) => {
      const outbox = new Outbox(sql);
      outbox.add([event()], 1);
      outbox.forget(1);
      outbox.rest(2);
      expect([outbox.isOpen, outbox.isEmpty]).toEqual([false, true]);
    });
  });

  it('it rests once idle and shipped, whichever alarm of the object fires', async () => {
    await inStorage((storage) => {
      const alarms: number[] = [];
      const watched = Object.assign(Object.create(storage) as typeof storage, {
        sql: storage.sql,
        transactionSync: <T>(work: () => T) => storage.transactionSync(work),
        setAlarm: async (at: number) => void alarms.push(at),
      });
      const outbox = new Outbox(storage.sql, undefined, true);
      const shipper = {
        nudge: () => {},
        get hasWork() {
          return !outbox.isEmpty;
        },
      } as unknown as Shipper;
      const rest = new Rest(watched, outbox, shipper);
      outbox.add([event()], 1_000);
      rest.wrote(1_000);
      rest.wrote(1_000);
      expect(alarms).toEqual([1_000 + DELIVERY_RETRY_MAX_MS]);
      rest.ring(61_000);
      outbox.forget(2);
      rest.ring(121_000);
      expect(alarms.slice(1)).toEqual([61_000 + DELIVERY_RETRY_MAX_MS, 121_000 + IDLE]);
      expect(outbox.isOpen).toBe(true);
      new Rest(watched, outbox, shipper).ring(121_000 + IDLE);
      expect(typesOf(outbox)).toEqual(['3 producer.close']);
    });
  });
});
