import { describe, expect, it } from 'vitest';
import type { SessionEvent } from '../../../edge/protocol/live-protocol.ts';
import { SpeechTracker, STREAM_TAIL_MS } from '../../../edge/stream/speech-tracker.ts';

const segment = (start: number, end: number, ending: 'endpoint' | 'length' = 'endpoint') =>
  ({ type: 'segment', start, end, ending }) as SessionEvent;
const started = (at: number): SessionEvent => ({ type: 'speech_started', at });
const interim = (start: number) => ({ type: 'interim', start }) as SessionEvent;
const cleared: SessionEvent = { type: 'cleared', id: 1 };
const tail = STREAM_TAIL_MS / 1_000;

describe('R14 the client has all words of a session', () => {
  it.each<[string, readonly (SessionEvent | number)[], number, boolean]>([
    ['after a segment', [started(1), segment(1, 2)], 2 + tail, true],
    ['not before the sound behind it is settled', [segment(1, 2)], 2.1 + tail, false],
    ['once that was silence', [segment(1, 2), 5], 5 + tail, true],
    ['not while speech has no segment', [segment(1, 2), started(2.5)], 3, false],
    ['not by a segment before that speech', [started(1), started(2.5), segment(1, 2), 2.2], 3, false],
    ['not while words may still change', [interim(1)], 1.5, false],
    ['after speech that was noise', [started(1), 3], 3, true],
    ['after speech that was cleared', [segment(1, 2), started(2.5), cleared], 3, true],
    ['not in an utterance that was cut at its greatest length', [segment(1, 21, 'length')], 21.1, false],
    ['not of sound that no agent has settled', [], 0.5, false],
  ])('%s', (_, happened, taken, over) => {
    const tracker = new SpeechTracker();
    for (const one of happened) {
      if (typeof one === 'number') tracker.commit(one);
      else tracker.track(one);
    }
    expect(tracker.isComplete(taken)).toBe(over);
  });
});
