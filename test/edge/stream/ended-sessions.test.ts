import { describe, expect, it } from 'vitest';
import { Ended, type Remains, remainsOf } from '../../../edge/stream/remains.ts';
import type { Resumable } from '../../../edge/stream/resume-token.ts';
import { limits } from '../../../shared/limits.ts';

const NOW = 1_760_000_000_000;
/** A token whose checkpoint is so many seconds, at 1,000 bytes each, from the beginning. */
const tokenAt = (time: number, began = 1): Resumable => ({
  v: 1,
  session: 's',
  tenant: 't',
  model: 'm',
  format: { encoding: 'mulaw', rate: 8_000, channels: 1 },
  began,
  until: NOW + 60_000,
  sealed: NOW,
  ...(time > 0 && { checkpoint: { position: time * 1_000, time, index: 0, state: '' } }),
});
const stand = { position: 5_000, from: 0, booked: 0, settled: 5, taken: 7 };

function leave(remains: Remains): Ended {
  const ended = new Ended();
  ended.note(1, remains);
  return ended;
}

describe('A1 what is in the record of a session that somebody goes on with', () => {
  it('what was heard after the last checkpoint is credited to the last token, once', () => {
    const ended = leave(remainsOf(stand));
    expect([5, 5, 5].map((time) => ended.bookedOf(tokenAt(time), NOW))).toEqual([7, 5, 5]);
  });

  it('an older token has no credit beyond its own checkpoint, and takes none away', () => {
    const ended = leave(remainsOf(stand));
    expect([0, 2, 5].map((time) => ended.bookedOf(tokenAt(time), NOW))).toEqual([0, 2, 7]);
  });

  it.each([
    ['all of the credit is used, and no more was heard', { from: 5, booked: 7, taken: 7 }, 5],
    ['some of it was not used', { from: 5, booked: 7, taken: 6 }, 6],
    ['more was heard', { from: 5, booked: 7, taken: 10 }, 8],
    ['nobody heard it', { from: 5, booked: 7, taken: undefined }, 7],
    ['of an edge that was lost nobody heard it', { from: 5, booked: 0, taken: undefined }, 0],
  ])('who goes on twice: %s', (_, change, booked) => {
    const ended = leave(remainsOf({ ...stand, ...change }));
    expect(ended.bookedOf(tokenAt(5), NOW)).toBe(booked);
  });

  it('what a session leaves is noted once, and not again over what came after it', () => {
    const first = remainsOf(stand);
    const ended = leave(first);
    ended.bookedOf(tokenAt(5), NOW);
    ended.note(1, remainsOf({ ...stand, from: 5, booked: 7, taken: 7 }));
    ended.note(1, first);
    expect(ended.bookedOf(tokenAt(5), NOW)).toBe(5);
  });

  it('of an edge that was lost nothing is, and of a session that ended long ago all up to the token', () => {
    const ended = new Ended();
    expect(ended.bookedOf(tokenAt(5), NOW)).toBe(0);
    expect(ended.bookedOf(tokenAt(5), NOW + limits.streamResumeMs.value)).toBe(5);
  });
});
