import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Aligner } from '../../edge/stream/align.ts';
import type { Encoding } from '../../shared/stream/format.ts';
import { runs } from '../seeds.ts';

const cut = (bytes: Uint8Array, sizes: readonly number[]) => {
  const pieces: Uint8Array[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length] as number;
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
};
const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 });
const take = (aligner: Aligner, pieces: readonly Uint8Array[]) => pieces.flatMap((piece) => [...aligner.take(piece)]);

describe('§3-18 what comes behind a gap begins with something whole', () => {
  it('a sample of each channel, whatever was lost in the middle of one', () => {
    const encoding = fc.constantFrom<[Encoding, number]>(['linear16', 2], ['linear32', 4], ['mulaw', 1]);
    fc.assert(
      fc.property(
        encoding,
        fc.constantFrom(1 as const, 2 as const),
        ...[fc.nat(50), fc.nat(50), sizes],
        ([name, width], channels, before, lost, each) => {
          const aligner = new Aligner({ encoding: name, rate: 8_000, channels });
          const frame = width * channels;
          const all = Uint8Array.from({ length: 200 }, (_, at) => at);
          expect(take(aligner, cut(all.subarray(0, before), each))).toEqual([...all.subarray(0, before)]);
          aligner.lose(all.subarray(before, before + lost));
          aligner.gap();
          const heard = take(aligner, cut(all.subarray(before + lost), each));
          expect(heard[0]).toBe(Math.ceil((before + lost) / frame) * frame);
          expect(heard).toHaveLength(200 - (heard[0] as number));
        },
      ),
      { numRuns: runs(200, 5_000) },
    );
  });

  it('a page of Ogg, wherever it begins and however it is cut; nothing is kept of what lies before', () => {
    const page = [...new TextEncoder().encode('OggS'), 0, 1, ...Array<number>(30).fill(9)];
    const noise = fc.array(fc.oneof(fc.nat(255), fc.constantFrom(0x4f, 0x67, 0x53)), { maxLength: 300 });
    fc.assert(
      fc.property(noise, sizes, (before, each) => {
        const aligner = new Aligner({ encoding: 'ogg-opus', rate: 48_000, channels: 1 });
        aligner.gap();
        const all = Uint8Array.from([...before, ...page, ...before]);
        const heard = take(aligner, cut(all, each));
        const first = all.findIndex(
          (_, at) => page.slice(0, 5).every((byte, index) => all[at + index] === byte) && (all[at + 5] as number) < 8,
        );
        expect(heard).toEqual([...all.subarray(first)]);
      }),
      { numRuns: runs(200, 5_000) },
    );
  });
});
