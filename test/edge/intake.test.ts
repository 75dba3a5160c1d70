import { describe, expect, it } from 'vitest';
import type { SessionEvent } from '../../edge/stream/dialect.ts';
import { Intake } from '../../edge/stream/intake.ts';
import { limits } from '../../shared/limits.ts';
import { Feed } from '../../shared/stream/feed.ts';

const format = { encoding: 'mulaw', rate: 8_000, channels: 1 } as const;
const options = { interim: false, endpointingMs: 500 } as const;

/** A ring that is full, and emptied when it is asked for. */
function startIntake() {
  const feed = new Feed(format, options);
  const told: SessionEvent[] = [];
  const intake = new Intake(feed, (event) => told.push(event));
  const take = (bytes: number) => intake.take(new Uint8Array(bytes), undefined);
  const fill = () => {
    const room = () => limits.streamRingBytes.value - feed.unsettled;
    while (room() > 0) take(Math.min(room(), 64 * 1024));
  };
  const settle = () => {
    for (let portion = feed.next(); portion; portion = feed.next()) {
      if (portion.kind === 'audio') feed.heard(portion.position + portion.audio.length, 0);
    }
    feed.settle({ position: feed.position, time: feed.time, index: 0, state: '' });
  };
  return { feed, told, take, fill, settle };
}

describe('MUST 48 what was not taken is missing', () => {
  it('also what is too little to be told: it is once there is enough of it, so times do not drift', () => {
    const { feed, told, take, fill, settle } = startIntake();
    for (let flood = 1; flood <= 2; flood++) {
      fill();
      take(600);
      settle();
      take(8);
      expect(told.filter(({ type }) => type === 'gap')).toHaveLength(flood - 1);
    }
    expect(told.at(-1)).toMatchObject({ type: 'gap', seconds: expect.closeTo(0.15, 9) });
    expect(feed.time).toBeCloseTo((2 * limits.streamRingBytes.value + 8 + 1_200) / 8_000, 6);
    // And it is told once.
    fill();
    take(600);
    settle();
    take(8);
    expect(told.filter(({ type }) => type === 'gap')).toHaveLength(1);
  });
});

describe('more messages than may wait, however short they are', () => {
  it('the first that is not taken is told, and there is room again when something is settled', () => {
    const { feed, told, take, settle } = startIntake();
    const most = limits.streamRingItems.value;
    for (let taken = 0; taken < most; taken++) take(1);
    expect([feed.position, told]).toEqual([most, []]);
    take(1);
    expect(feed.position).toBe(most);
    expect(told).toEqual([{ type: 'overflow', position: most, bytes: 1, seconds: 1 / 8_000 }]);
    settle();
    take(1);
    expect(feed.position).toBe(most + 1);
  });
});
