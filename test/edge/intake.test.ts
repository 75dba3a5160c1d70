import { describe, expect, it } from 'vitest';
import type { SessionEvent } from '../../edge/stream/dialect.ts';
import { Intake } from '../../edge/stream/intake.ts';
import { limits } from '../../shared/limits.ts';
import { Feed } from '../../shared/stream/feed.ts';

const format = { encoding: 'mulaw', rate: 8_000, channels: 1 } as const;
const options = { interim: false, endpointingMs: 500 } as const;
const unbounded = { mayGrow: () => true, end: () => {} };

/** An intake whose buffer is full of short messages, and emptied on request. */
function startFull() {
  const feed = new Feed(format, options);
  const told: SessionEvent[] = [];
  const intake = new Intake(feed, unbounded, (event) => told.push(event));
  const take = (bytes: number, position?: number) => intake.take(new Uint8Array(bytes), position);
  const settle = () => {
    for (let portion = feed.next(); portion; portion = feed.next()) {
      if (portion.kind === 'audio') feed.heard(portion.position + portion.audio.length, 0);
    }
    feed.settle({ position: feed.position, time: feed.time, index: 0, state: '' });
  };
  const most = limits.streamRingItems.value;
  for (let taken = 0; taken < most; taken++) take(1);
  expect([feed.position, told]).toEqual([most, []]);
  return { feed, told, intake, take, settle, most };
}

const full = { ok: false, refusal: { reason: 'backlog_full' } };

describe('C10 R1 audio that a full buffer does not take', () => {
  it('without a position is refused and reported by nothing else', () => {
    const { feed, told, take, most } = startFull();
    expect(take(1)).toMatchObject(full);
    expect([feed.position, told]).toEqual([most, []]);
  });

  it('with a position is reported once, and taken when it comes again', () => {
    const { feed, told, take, settle, most } = startFull();
    for (const position of [most, most + 1]) expect(take(1, position).ok).toBe(true);
    expect(told).toEqual([{ type: 'overflow', position: most, bytes: 1, seconds: 1 / 8_000 }]);
    settle();
    take(1, most);
    expect(feed.position).toBe(most + 1);
  });

  it('MUST 11: refuses the end until it came again', () => {
    const { intake, take, settle, most } = startFull();
    expect(intake.end().ok).toBe(true);
    take(1, most);
    expect(intake.end()).toMatchObject(full);
    settle();
    take(1, most);
    expect(intake.end().ok).toBe(true);
  });

  it('after the end changes nothing', () => {
    const { feed, told, take, most } = startFull();
    feed.end();
    expect([take(1).ok, take(1, most).ok, told]).toEqual([true, true, []]);
  });

  it('does not replace the reason for which the edge ended the input', () => {
    const { feed, intake, take, most } = startFull();
    take(1, most);
    feed.end();
    expect(intake.end().ok).toBe(true);
  });

  it('is what the budget of the isolate does not allow', () => {
    const feed = new Feed(format, options);
    const most = feed.memoryFor(new Uint8Array(10));
    const lease = { ...unbounded, mayGrow: (bytes: number) => feed.unsettled + bytes <= most };
    const intake = new Intake(feed, lease, () => {});
    expect(intake.take(new Uint8Array(10), undefined).ok).toBe(true);
    expect(intake.take(new Uint8Array(1), undefined)).toMatchObject(full);
  });
});
