import { describe, expect, it } from 'vitest';
import { Backlog } from '../../../edge/ledger/backlog.ts';
import { createEvent } from '../../../edge/ledger/create-event.ts';
import type { GateStep } from '../../../edge/ledger/gate-step.ts';

const gap = () => createEvent({ type: 'gap', lost: 1, from: 1, to: 1 }, 1);
const record = (events: number): GateStep => ({ kind: 'record', events: Array.from({ length: events }, gap) });
const settle = (id: string, events = 1): GateStep => ({
  kind: 'settle',
  id,
  mode: 'strict',
  audioSeconds: 1,
  events: Array.from({ length: events }, gap),
});

describe('A1 steps for an unreachable gate', () => {
  it('come back once, in their order, a settle whole', () => {
    const backlog = new Backlog();
    const steps = [record(1), settle('a'), settle('b', 0)];
    backlog.keep('t/eu', steps);
    expect(backlog.take('other/eu')).toBeUndefined();
    expect(backlog.take('t/eu')).toEqual({ steps, lost: 0 });
    expect(backlog.take('t/eu')).toBeUndefined();
    expect(backlog.size).toBe(0);
  });

  it('that only kept a place are not worth repeating', () => {
    const backlog = new Backlog();
    backlog.keep('t/eu', [{ kind: 'renew', id: 'a', events: [] }, record(0)]);
    expect(backlog.size).toBe(0);
  });

  it('are bounded over all gates; drops are counted', () => {
    const backlog = new Backlog(10);
    for (let n = 0; n < 1_000; n += 1) backlog.keep(`t${n}/eu`, [settle(`${n}`, 2)]);
    expect(backlog.size).toBeLessThanOrEqual(10);
    let [left, lost] = [0, backlog.takeForgotten()];
    for (let n = 0; n < 1_000; n += 1) {
      const kept = backlog.take(`t${n}/eu`);
      left += kept?.steps.reduce((sum, { events }) => sum + events.length, 0) ?? 0;
      lost += kept?.lost ?? 0;
    }
    expect(left).toBeGreaterThan(0);
    expect(left + lost).toBe(2_000);
    expect([backlog.size, backlog.takeForgotten()]).toEqual([0, 0]);
  });

  it('those of one gate lose the oldest first', () => {
    const backlog = new Backlog(4);
    for (const id of ['a', 'b', 'c', 'd']) backlog.keep('t/eu', [settle(id)]);
    const kept = backlog.take('t/eu');
    expect(kept?.steps.map((step) => 'id' in step && step.id)).toEqual(['b', 'c', 'd']);
    expect(kept?.lost).toBe(1);
  });
});

describe('A2 an audit event of the edge', () => {
  it('has the members of its type only, checked at compile time', () => {
    const more = { tenant: 't', transcript: 'words' };
    // @ts-expect-error `transcript` is no member of `keys`.
    createEvent({ type: 'keys', agent: 'a', action: 'gone', ...more }, 1);
    // @ts-expect-error `status` belongs to `inference.complete`.
    createEvent({ type: 'inference.attempt', tenant: 't', request: 'r', action: 'a', ...{ status: 200 } }, 1);
    expect(createEvent({ type: 'keys', agent: 'a', action: 'gone', tenant: 't' }, 1)).toMatchObject({
      producer: 'edge',
    });
  });
});
