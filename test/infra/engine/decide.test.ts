import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { admit, decide, type Waiting } from '../../../infra/pool/engine/batch/decide.ts';
import { batchPolicy } from '../../../infra/pool/engine/batch/policy.ts';
import { parseText } from '../../../infra/pool/models/config/parse-text.ts';
import { settle } from '../../../infra/pool/models/config/settle.ts';

const io = 'input { name: "X" data_type: TYPE_FP32 dims: -1 } output { name: "Y" data_type: TYPE_FP32 dims: -1 }';

/** The policy of a configuration, read as the engine reads it. */
function policyOf(batching: string, largest = 8) {
  const parsed = parseText(`max_batch_size: ${largest} ${io} ${batching}`);
  const config = parsed.ok ? settle(parsed.value, 'm') : parsed;
  if (!config.ok) throw new Error(config.refusal.reason);
  return batchPolicy(config.value);
}

let turn = 0;
const waits = (given: Partial<Waiting> = {}): Waiting => ({
  turn: turn++,
  level: 0,
  size: 1,
  enqueuedAt: 0,
  expiresAt: 0,
  shape: '',
  ...given,
});
const several = (count: number, given: Partial<Waiting> = {}) => Array.from({ length: count }, () => waits(given));
const turns = (list: readonly Waiting[]) => list.map((one) => one.turn);

describe('A1: forming a batch', () => {
  const patient = 'dynamic_batching { preferred_batch_size: [2, 4] max_queue_delay_microseconds: 100 }';

  it('does nothing with an empty queue or without a free instance', () => {
    expect(decide([], policyOf(patient), true, 0)).toEqual({ expired: [], send: [], wakeAt: undefined });
    expect(decide(several(8), policyOf(patient), false, 1e9)).toEqual({ expired: [], send: [], wakeAt: undefined });
  });

  it('waits for a preferred size until the oldest request reaches the delay', () => {
    const queue = [waits({ enqueuedAt: 10 })];
    expect(decide(queue, policyOf(patient), true, 50)).toMatchObject({ send: [], wakeAt: 110 });
    expect(decide(queue, policyOf(patient), true, 110).send).toHaveLength(1);
  });

  it('takes the largest preferred size that the queue can give', () => {
    expect(decide(several(2), policyOf(patient), true, 0).send).toHaveLength(2);
    expect(decide(several(3), policyOf(patient), true, 0).send).toHaveLength(2);
    expect(decide(several(7), policyOf(patient), true, 0).send).toHaveLength(4);
  });

  it('sends any batch after the delay', () => {
    expect(decide(several(3), policyOf(patient), true, 100).send).toHaveLength(3);
    expect(decide(several(20), policyOf(patient), true, 100).send).toHaveLength(8);
  });

  it('without a delay sends at once, up to the maximum', () => {
    const policy = policyOf('dynamic_batching { }');
    expect(decide(several(1), policy, true, 0).send).toHaveLength(1);
    expect(decide(several(5), policy, true, 0).send).toHaveLength(5);
    expect(decide(several(20), policy, true, 0).send).toHaveLength(8);
  });

  it('counts items, not requests, and never splits a request', () => {
    const policy = policyOf('dynamic_batching { }');
    expect(decide(several(3, { size: 3 }), policy, true, 0).send).toHaveLength(2);
    expect(decide(several(2, { size: 8 }), policy, true, 0).send).toHaveLength(1);
  });

  it('ends a batch before another shape', () => {
    const queue = [...several(2, { shape: '16' }), ...several(2, { shape: '32' })];
    const only = policyOf('dynamic_batching { preferred_batch_size: [8] max_queue_delay_microseconds: 100 }');
    expect(turns(decide(queue, only, true, 0).send)).toEqual(turns(queue.slice(0, 2)));
  });

  it('without dynamic batching runs every request alone, in order', () => {
    const policy = policyOf('');
    const queue = [waits({ size: 4 }), waits()];
    expect(turns(decide(queue, policy, true, 0).send)).toEqual([queue[0]!.turn]);
  });

  it('follows the requirement: 50 ms and [16, 32, 64]', () => {
    const policy = policyOf(
      'dynamic_batching { preferred_batch_size: [16, 32, 64] max_queue_delay_microseconds: 50000 }',
      64,
    );
    expect(decide(several(15), policy, true, 0)).toMatchObject({ send: [], wakeAt: 50_000 });
    for (const [queued, sent] of [
      [16, 16],
      [31, 16],
      [32, 32],
      [63, 32],
      [64, 64],
      [90, 64],
    ] as const) {
      expect(decide(several(queued), policy, true, 0).send, `${queued} queued`).toHaveLength(sent);
    }
    expect(decide(several(40), policy, true, 50_000).send).toHaveLength(40);
  });
});

describe('A2: priorities and queue policy', () => {
  const leveled = `dynamic_batching { priority_levels: 3 default_priority_level: 2
    default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 100 allow_timeout_override: true max_queue_size: 2 }
    priority_queue_policy { key: 1 value { timeout_action: REJECT default_timeout_microseconds: 50 } } }`;
  const none = { priority: 0, timeoutUs: 0 };

  it('uses the default level for an unknown one', () => {
    const policy = policyOf(leveled);
    for (const [priority, level] of [
      [0, 2],
      [1, 1],
      [3, 3],
      [4, 2],
    ] as const) {
      expect(admit([], policy, { ...none, priority }, 0)).toMatchObject({ ok: true, value: { level } });
    }
    expect(admit([], policyOf('dynamic_batching { }'), { ...none, priority: 5 }, 0)).toMatchObject({
      value: { level: 0 },
    });
  });

  it('refuses requests on a full level only', () => {
    const policy = policyOf(leveled);
    const queue = several(2, { level: 2 });
    expect(admit(queue, policy, none, 0)).toEqual({ ok: false, refusal: 'full' });
    expect(admit(queue, policy, { ...none, priority: 3 }, 0).ok).toBe(true);
  });

  it('bounds a queue without a configured maximum', () => {
    const policy = policyOf('dynamic_batching { }');
    expect(admit(several(1024), policy, none, 0).ok).toBe(false);
  });

  it('a request may shorten its timeout where allowed, never lengthen it', () => {
    const policy = policyOf(leveled);
    const expiry = (priority: number, timeoutUs: number) => admit([], policy, { priority, timeoutUs }, 1000);
    expect(expiry(2, 30)).toMatchObject({ value: { expiresAt: 1030 } });
    expect(expiry(2, 300)).toMatchObject({ value: { expiresAt: 1100 } });
    expect(expiry(1, 30)).toMatchObject({ value: { expiresAt: 1050 } });
    expect(admit([], policyOf('dynamic_batching { }'), { ...none, timeoutUs: 5 }, 0)).toMatchObject({
      value: { expiresAt: 0 },
    });
  });

  it('serves lower levels first, then by arrival', () => {
    const policy = policyOf(leveled);
    const queue = [waits({ level: 3 }), waits({ level: 2 }), waits({ level: 1 }), waits({ level: 2 })];
    const order = turns(decide(queue, policy, true, 0).send);
    expect(order).toEqual([queue[2], queue[1], queue[3], queue[0]].map((one) => one!.turn));
  });

  it('REJECT drops an overdue request, with or without a free instance', () => {
    const policy = policyOf(leveled);
    const queue = [waits({ level: 1, expiresAt: 50 }), waits({ level: 1, expiresAt: 90 })];
    for (const free of [true, false]) {
      expect(turns(decide(queue, policy, free, 51).expired)).toEqual([queue[0]!.turn]);
    }
    expect(decide(queue, policy, false, 50)).toMatchObject({ expired: [], wakeAt: 51 });
  });

  it('DELAY moves an overdue request behind its level without dropping it', () => {
    const policy = policyOf(leveled);
    const queue = [waits({ level: 2, expiresAt: 50 }), waits({ level: 2, expiresAt: 500 }), waits({ level: 3 })];
    const { expired, send } = decide(queue, policy, true, 51);
    expect(expired).toEqual([]);
    expect(turns(send)).toEqual([queue[1], queue[0], queue[2]].map((one) => one!.turn));
  });
});

const anyQueue = fc
  .array(
    fc.record({
      level: fc.nat(2),
      size: fc.integer({ min: 1, max: 8 }),
      enqueuedAt: fc.nat(1000),
      expiresAt: fc.oneof(fc.constant(0), fc.nat(2000)),
      shape: fc.constantFrom('a', 'b'),
    }),
    { maxLength: 30 },
  )
  .map((list) => list.map((one, index) => ({ ...one, turn: index })));
const anyPolicy = fc
  .record({
    preferred: fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 3 }),
    delay: fc.nat(500),
    action: fc.constantFrom('REJECT', 'DELAY'),
  })
  .map(({ preferred, delay, action }) =>
    policyOf(`dynamic_batching { preferred_batch_size: [${preferred}] max_queue_delay_microseconds: ${delay}
      priority_levels: 2 default_priority_level: 1 default_queue_policy { timeout_action: ${action} default_timeout_microseconds: 9 } }`),
  );

describe('A1 A2: random queues', () => {
  it('a batch has one shape, fits, is in order and without repeats', () => {
    fc.assert(
      fc.property(anyQueue, anyPolicy, fc.boolean(), fc.nat(3000), (queue, policy, free, now) => {
        const { expired, send } = decide(queue, policy, free, now);
        expect(new Set(turns([...expired, ...send])).size).toBe(expired.length + send.length);
        expect(send.reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(8);
        expect(new Set(send.map(({ shape }) => shape)).size).toBeLessThanOrEqual(1);
        expect(send.map(({ level }) => level)).toEqual(send.map(({ level }) => level).sort());
        if (!free) expect(send).toEqual([]);
      }),
    );
  });

  it('with a free instance alarms reach every request', () => {
    fc.assert(
      fc.property(anyQueue, anyPolicy, (given, policy) => {
        let queue = given;
        let now = 1000;
        for (let step = 0; queue.length > 0; step++) {
          if (step > 200) throw new Error('the queue does not empty');
          const { expired, send, wakeAt } = decide(queue, policy, true, now);
          const gone = new Set<unknown>([...expired, ...send]);
          queue = queue.filter((one) => !gone.has(one));
          if (gone.size > 0 || queue.length === 0) continue;
          expect(wakeAt).toBeGreaterThan(now);
          now = wakeAt!;
        }
      }),
    );
  });
});
