import { describe, expect, it } from 'vitest';
import { type EndedSession, EndedSessions, endSession } from '../../../edge/stream/ended-sessions.ts';
import { STREAM_RESUME_MS } from '../../../edge/stream/limits.ts';
import type { Resumable } from '../../../edge/stream/resume-token.ts';

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
const stand = { position: 5_000, from: 0, booked: 0, committed: 5, processed: 7 };

function leave(session: EndedSession): EndedSessions {
  const ended = new EndedSessions();
  ended.add(1, session);
  return ended;
}

describe('A1 booked seconds of a session that resumes', () => {
  it('credits seconds after the last checkpoint to the last token, once', () => {
    const ended = leave(endSession(stand));
    expect([5, 5, 5].map((time) => ended.takeBooked(tokenAt(time), NOW))).toEqual([7, 5, 5]);
  });

  it('gives an older token no credit, and takes none away', () => {
    const ended = leave(endSession(stand));
    expect([0, 2, 5].map((time) => ended.takeBooked(tokenAt(time), NOW))).toEqual([0, 2, 7]);
  });

  it.each([
    ['all of the credit is used, and no more was heard', { from: 5, booked: 7, processed: 7 }, 5],
    ['some of it was not used', { from: 5, booked: 7, processed: 6 }, 6],
    ['more was heard', { from: 5, booked: 7, processed: 10 }, 8],
    ['no agent processed it', { from: 5, booked: 7, processed: undefined }, 7],
    ['no agent processed it after an edge was lost', { from: 5, booked: 0, processed: undefined }, 0],
  ])('resumed twice: %s', (_, change, booked) => {
    const ended = leave(endSession({ ...stand, ...change }));
    expect(ended.takeBooked(tokenAt(5), NOW)).toBe(booked);
  });

  it('adds an ended session once, and not again over a later one', () => {
    const first = endSession(stand);
    const ended = leave(first);
    ended.takeBooked(tokenAt(5), NOW);
    ended.add(1, endSession({ ...stand, from: 5, booked: 7, processed: 7 }));
    ended.add(1, first);
    expect(ended.takeBooked(tokenAt(5), NOW)).toBe(5);
  });

  it('books nothing for a lost edge, and everything of an old session', () => {
    const ended = new EndedSessions();
    expect(ended.takeBooked(tokenAt(5), NOW)).toBe(0);
    expect(ended.takeBooked(tokenAt(5), NOW + STREAM_RESUME_MS)).toBe(5);
  });
});
