import { describe, expect, it } from 'vitest';
import {
  dueAt,
  millisecondsLeft,
  STREAM_ENDING_MS,
  STREAM_SILENCE_MS,
  type Times,
} from '../../../edge/stream/deadlines.ts';
import { STREAM_FINISH_MS, STREAM_IDLE_MS, STREAM_RESUME_MS } from '../../../edge/stream/limits.ts';

const HOUR = 3_600_000;
const calm: Times = {
  began: 0,
  until: HOUR,
  received: 0,
  client: 1_000_000,
  disconnected: 0,
  agent: 1_000_000,
  finishing: undefined,
  done: false,
};

const due = (change: Partial<Times>, now: number) => dueAt({ ...calm, ...change }, now);
const NOW = 1_000_000;

describe('deadlines of a session', () => {
  it.each<[string, Partial<Times>, number, string[]]>([
    ['nothing', {}, NOW, []],
    ['a silent agent', { agent: NOW - STREAM_SILENCE_MS - 1 }, NOW, ['agent_silent']],
    ['none yet', { agent: undefined }, NOW, []],
    ['a silent client', { client: NOW - STREAM_IDLE_MS - 1 }, NOW, ['idle']],
    ['a disconnected client', { client: undefined, disconnected: NOW - STREAM_RESUME_MS }, NOW, []],
    [
      'a client that does not come back',
      { client: undefined, disconnected: NOW - STREAM_RESUME_MS - 1 },
      NOW,
      ['gone'],
    ],
    ['an overdue rest', { finishing: NOW - STREAM_FINISH_MS - 1, client: NOW }, NOW, ['overdue']],
    ['memory that does not come', { starvedUntil: NOW - 1 }, NOW, ['starved']],
    ['memory that may still come', { starvedUntil: NOW + 999 }, NOW, []],
    ['the end in sight', { client: HOUR, agent: HOUR }, HOUR - STREAM_ENDING_MS, ['ending']],
    ['the end', { client: HOUR, agent: HOUR }, HOUR, ['too_long']],
    ['the end by audio', { received: 3_600 }, NOW, ['too_long']],
    ['no idleness while the rest is awaited', { finishing: NOW, client: 0 }, NOW, []],
    [
      'nothing but the return of the client when done',
      { done: true, client: undefined, disconnected: NOW, finishing: 0 },
      NOW,
      [],
    ],
  ])('%s', (_, change, now, expected) => {
    expect(due(change, now)).toEqual(expected);
  });

  it('count the longer of clock and audio', () => {
    expect(millisecondsLeft({ ...calm, received: 1_800 }, 600_000)).toBe(1_800_000);
    expect(millisecondsLeft({ ...calm, received: 60 }, 600_000)).toBe(3_000_000);
  });
});
