import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createVoiceDetector, UNIT_SAMPLES } from '../../../../infra/pool/agent/asr/vad/detect.ts';
import { createTape } from '../../../../infra/pool/agent/stream/tape.ts';
import { createUtterance } from '../../../../infra/pool/agent/stream/utterance.ts';
import { seeds } from '../../../seeds.ts';
import { voice } from '../fixtures.ts';

const ints = fc
  .array(fc.integer({ min: -32_768, max: 32_767 }), { minLength: 1, maxLength: 40 })
  .map((some) => Int16Array.from({ length: some.length * 97 }, (_, i) => (some[i % some.length] as number) ^ (i & 15)));

describe('sound of a stream in 16 bits', () => {
  it('returns its input for pieces of any length, integers and floats', () => {
    fc.assert(
      fc.property(fc.array(ints, { maxLength: 12 }), fc.boolean(), (pieces, floats) => {
        const tape = createTape();
        const out: number[] = [];
        for (const piece of pieces) {
          const sound = floats ? Float32Array.from(piece, (sample) => sample / 32_768) : piece;
          tape.push(sound, (unit) => out.push(...unit));
        }
        const whole = pieces.flatMap((piece) => [...piece]);
        expect([...out, ...tape.rest()]).toEqual(whole);
        expect(tape.next()).toBe(Math.floor(whole.length / UNIT_SAMPLES));
      }),
      { numRuns: Math.min(seeds, 1_000) },
    );
  });

  it('too loud for 16 bits is clipped', () => {
    const tape = createTape();
    tape.push(Float32Array.of(1, -1, 1.5, -7, 0.99999), () => {});
    expect([...tape.rest()]).toEqual([32_767, -32_768, 32_767, -32_768, 32_767]);
  });

  it('memory goes to others once it is given back, and not before', () => {
    const [one, other] = [createTape(), createTape()];
    const fill = (tape: typeof one, value: number, units: number) => {
      const given: Int16Array[] = [];
      tape.push(new Int16Array(units * UNIT_SAMPLES).fill(value), (unit) => given.push(unit));
      return given;
    };
    const mine = fill(one, 1, 6);
    one.keep(4);
    fill(other, 2, 20);
    expect(mine.slice(4).every((unit) => unit.every((sample) => sample === 1))).toBe(true);
    expect(mine.slice(0, 4).every((unit) => unit[0] === 2)).toBe(true);
    // Released once, memory is not released again.
    one.keep(2);
    one.keep(4);
    const later = [...fill(one, 3, 8), ...fill(other, 4, 8)];
    expect(new Set(later).size).toBe(16);
    expect(mine.slice(4).every((unit) => unit.every((sample) => sample === 1))).toBe(true);
  });

  it('an utterance reads windows across units, and reports when released', () => {
    const tape = createTape();
    const utterance = createUtterance(0);
    const sound = Int16Array.from({ length: 3 * UNIT_SAMPLES }, (_, i) => i - 900);
    tape.push(sound, (unit) => utterance.grow(unit));
    const shape = { windowSamples: 1_000, hopSamples: 700 };
    const window = utterance.window(1, shape);
    expect(window?.samples).toEqual(Float32Array.from(sound.subarray(700, 1_700), (sample) => sample / 32_768));
    expect(window?.last).toBe(false);
    expect(utterance.released()).toBe(false);
    utterance.release();
    expect(utterance.released()).toBe(true);
  });

  it('A4: the voice detector decides the same about both forms', async () => {
    const [ofInts, ofFloats] = [await createVoiceDetector(), await createVoiceDetector()];
    const sound = Int16Array.from(voice(3), (sample) => Math.round(sample * 32_767));
    sound.fill(1, 0, 4 * UNIT_SAMPLES);
    const decisions = new Set<boolean>();
    for (let at = 0; at + UNIT_SAMPLES <= sound.length; at += UNIT_SAMPLES) {
      const unit = sound.subarray(at, at + UNIT_SAMPLES);
      const heard = ofInts.hasVoice(unit);
      decisions.add(heard);
      expect(ofFloats.hasVoice(Float32Array.from(unit, (sample) => sample / 32_768))).toBe(heard);
      expect(ofFloats.save()).toEqual(ofInts.save());
    }
    expect(decisions.size).toBe(2);
    ofInts.free();
    ofFloats.free();
  });
});
