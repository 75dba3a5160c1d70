import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UNIT_SAMPLES } from '../../../../../infra/pool/agent/asr/vad/detect.ts';
import {
  createSplitter,
  findCut,
  PAUSE_UNITS,
  SHORTEST_SHARE,
  UPLOAD_PIECE_S,
} from '../../../../../infra/pool/agent/jobs/transcription/split.ts';
import { UPLOAD_PIECES_MAX, UPLOAD_S } from '../../../../../shared/jobs/limits.ts';
import { joinSamples, silence, voice } from '../../fixtures.ts';

const SECOND = 16_000;

interface Cut {
  start: number;
  samples: Int16Array;
}

function cut(samples: Float32Array, most: number, portion = samples.length): Cut[] {
  const splitter = createSplitter(most);
  const pieces: Cut[] = [];
  for (let at = 0; at < samples.length; at += portion) {
    for (const piece of splitter.push(samples.subarray(at, at + portion))) {
      pieces.push({ start: piece.start, samples: piece.samples.slice() });
    }
  }
  const last = splitter.finish();
  return [...pieces, { start: last.start, samples: last.samples.slice() }];
}

const bytesOf = (pieces: readonly Cut[]): Buffer =>
  Buffer.concat(pieces.map(({ samples }) => new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength)));

describe('a recording is cut at silences (C11)', () => {
  it('in the middle of the quietest half second of the last fifth', () => {
    const recording = joinSamples(voice(17), silence(1), voice(8));
    const pieces = cut(recording, 20 * SECOND);
    expect(pieces.map(({ start }) => start / SECOND)).toEqual([0, expect.closeTo(17.75, 2)]);
  });

  it('not at an earlier pause, which would make many small pieces', () => {
    const recording = joinSamples(voice(6), silence(1), voice(10), silence(0.8), voice(5));
    const [, second] = cut(recording, 20 * SECOND);
    expect((second?.start ?? 0) / SECOND).toBeGreaterThan(17);
    expect((second?.start ?? 0) / SECOND).toBeLessThan(17.8);
  });

  it('audio that fits one piece is not cut, to the sample', () => {
    expect(cut(voice(10), 10 * SECOND)).toHaveLength(1);
    expect(cut(joinSamples(voice(10), new Float32Array(1)), 10 * SECOND)).toHaveLength(2);
  });

  it('hours of silence give the longest pieces there may be', () => {
    const pieces = cut(silence(35), 10 * SECOND);
    expect(pieces.length).toBeLessThanOrEqual(4);
  });

  it('loses and doubles no sample, and cuts alike in whatever portions the sound comes', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 150_000 }),
        fc.integer({ min: 1, max: 9_000 }),
        fc.integer({ min: 55, max: 90 }),
        fc.integer(),
        (length, portion, units, seed) => {
          let state = seed | 1;
          const samples = Float32Array.from({ length }, () => {
            state = (Math.imul(state, 1_103_515_245) + 12_345) | 0;
            return ((state >> 16) / 32_768) * (state & 0x4000 ? 1 : 0);
          });
          const most = units * 800;
          const whole = cut(samples, most);
          const expected = Int16Array.from(samples, (sample) => Math.round(sample * 32_767));
          expect(bytesOf(whole).equals(Buffer.from(expected.buffer))).toBe(true);
          whole.reduce((at, piece) => {
            expect(piece.start).toBe(at);
            return at + piece.samples.length;
          }, 0);
          for (const piece of whole.slice(0, -1))
            expect(piece.samples.length).toBeGreaterThanOrEqual(Math.floor(most * SHORTEST_SHARE));
          for (const piece of whole) expect(piece.samples.length).toBeLessThanOrEqual(most);
          const again = cut(samples, most, portion);
          expect(again.map(({ start }) => start)).toEqual(whole.map(({ start }) => start));
          expect(bytesOf(again).equals(bytesOf(whole))).toBe(true);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('never into more pieces than an upload may have', () => {
    const shortest = UPLOAD_PIECE_S * SHORTEST_SHARE;
    expect(Math.ceil(UPLOAD_S / shortest)).toBeLessThanOrEqual(UPLOAD_PIECES_MAX);
  });

  it('ten hours of silence are 61 pieces', () => {
    const units = (UPLOAD_PIECE_S * SECOND) / UNIT_SAMPLES;
    const stays = findCut(new Float64Array(units), units);
    expect(stays).toBe(units - PAUSE_UNITS / 2);
    expect(Math.ceil((36_000 * SECOND) / UNIT_SAMPLES / stays)).toBe(61);
    expect(UPLOAD_PIECES_MAX).toBeGreaterThanOrEqual(61);
  });

  it('finds the last of the quietest places', () => {
    const loud = new Array<number>(200).fill(9);
    const with2 = loud.map((energy, unit) => ((unit >= 165 && unit < 175) || unit >= 190 ? 1 : energy));
    expect(findCut(with2, 200)).toBe(200 - PAUSE_UNITS / 2);
    const with1 = loud.map((energy, unit) => (unit >= 165 && unit < 175 ? 1 : energy));
    expect(findCut(with1, 200)).toBe(170);
  });
});
