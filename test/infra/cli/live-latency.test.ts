import { describe, expect, it } from 'vitest';
import { createWordClock } from '../../../infra/cli/live/latency.ts';

/** Frame n is sent at (n + 1) × 100 ms: as its last sample is spoken. */
function clockAfter(frames: number) {
  const clock = createWordClock();
  for (let index = 0; index < frames; index += 1) clock.sent(index, (index + 1) * 100);
  return clock;
}
const interim = (utterance: number, ...wordEnds: number[]) => ({ utterance, wordEnds, final: false });

describe('R13: how long a word takes', () => {
  it('counts from the frame that holds its end', () => {
    const clock = clockAfter(10);
    expect(clock.shown(interim(0, 0.25), 450)).toEqual([{ kind: 'partial', milliseconds: 150, at: 0.25 }]);
  });

  it('a word that ends where a frame ends was sent with that frame', () => {
    expect(clockAfter(10).shown(interim(0, 0.3), 400)).toMatchObject([{ milliseconds: 100 }]);
    expect(clockAfter(10).shown(interim(0, 0), 400)).toMatchObject([{ milliseconds: 300 }]);
  });

  it('counts a word as partial once, an utterance as final from its last word', () => {
    const clock = clockAfter(20);
    expect(clock.shown(interim(0, 0.3), 500)).toHaveLength(1);
    expect(clock.shown(interim(0, 0.4), 600)).toEqual([]);
    expect(clock.shown(interim(0, 0.3, 0.8), 1_000)).toMatchObject([{ kind: 'partial', at: 0.8, milliseconds: 200 }]);
    const last = clock.shown({ utterance: 0, wordEnds: [0.3, 0.8, 1.2], final: true }, 2_000);
    expect(last).toMatchObject([
      { kind: 'partial', at: 1.2, milliseconds: 800 },
      { kind: 'final', at: 1.2, milliseconds: 800 },
    ]);
  });

  it('measures nothing for a final event without words', () => {
    const clock = clockAfter(20);
    expect(clock.shown({ utterance: 0, wordEnds: [], final: true }, 600)).toEqual([]);
  });

  it('begins again with each utterance', () => {
    const clock = clockAfter(20);
    clock.shown(interim(0, 0.3, 0.5), 600);
    expect(clock.shown(interim(1, 1.1), 1_500)).toMatchObject([{ milliseconds: 400 }]);
  });

  it('measures nothing that ends in unsent or long past sound', () => {
    expect(clockAfter(10).shown(interim(0, 1.01), 2_000)).toEqual([]);
    expect(clockAfter(2_000).shown(interim(0, 1), 200_000)).toEqual([]);
  });
});
