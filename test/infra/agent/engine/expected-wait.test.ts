import { expect, it } from 'vitest';
import { expectedWaitMs, waitsTooLong } from '../../../../infra/pool/agent/engine/expected-wait.ts';
import { PASSED_STARTS_MAX } from '../../../../infra/pool/agent/engine/queue.ts';
import { createServiceTime } from '../../../../infra/pool/agent/engine/serving-time.ts';
import { type AgentContextOptions, openAdmission } from '../../../../infra/pool/agent/request/agent-context.ts';

const full = { ahead: 9, slots: 4, busy: 4, serviceMs: 400, urgentSlots: 0 };

it('A2 the expected wait is that of the slots that urgent classes leave', () => {
  expect(expectedWaitMs({ ...full, busy: 0, ahead: 3 })).toBe(0);
  expect(expectedWaitMs(full)).toBe(1_000);
  expect(expectedWaitMs({ ...full, urgentSlots: 2 })).toBe(2_000);
  expect(expectedWaitMs({ ...full, urgentSlots: 4 })).toBe(1_000 * (PASSED_STARTS_MAX + 1));
});

it('A2 a class waits within its bound, the next in line always', () => {
  expect(waitsTooLong('realtime', full)).toBe(true);
  expect(waitsTooLong('interactive', full)).toBe(false);
  expect(waitsTooLong('interactive', { ...full, urgentSlots: 3.5 })).toBe(true);
  expect(waitsTooLong('realtime', { ...full, ahead: 0, slots: 1, busy: 1, serviceMs: 60_000 })).toBe(false);
});

it('service times of the last ten seconds count, by class', () => {
  let now = 0;
  const times = createServiceTime(() => now);
  expect(times.mean()).toBe(0);
  times.add(9_000, 'batch');
  now = 6_000;
  times.add(1_000, 'realtime');
  expect(times.mean()).toBe(5_000);
  now = 12_000;
  times.add(3_000, 'interactive');
  expect(times.mean()).toBe(2_000);
  expect([times.urgentSlots('realtime'), times.urgentSlots('default')]).toEqual([0, 0.4]);
});

it('A2 the agent refuses and reports a class that waits too long', () => {
  const context = openAdmission({
    now: () => 0,
    dispatcher: { ahead: () => full.ahead, busy: () => full.busy },
    pace: () => ({ serviceMs: full.serviceMs, slots: full.slots, urgentSlots: () => 0 }),
    degrader: { note() {} },
    streamsMax: 1,
  } as unknown as AgentContextOptions);
  const request = { tenant: 'a', deadline: 1_000 };
  expect(context.takeSlot({ ...request, class: 'realtime' })).toMatchObject({ refusal: { reason: 'pool_busy' } });
  expect(context.takeSlot({ ...request, class: 'interactive' }).ok).toBe(true);
  expect(context.full()).toEqual(['realtime']);
});
