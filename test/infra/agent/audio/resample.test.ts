import { describe, expect, it } from 'vitest';
import { mixDown } from '../../../../infra/pool/agent/audio/mono.ts';
import { createResampler, type Resampler } from '../../../../infra/pool/agent/audio/resample.ts';

const tone = (hz: number, rate: number, seconds: number) =>
  Float32Array.from({ length: Math.round(rate * seconds) }, (_, i) => 0.5 * Math.sin((2 * Math.PI * hz * i) / rate));

function convert(samples: Float32Array, from: number, to: number, block = samples.length): Float32Array {
  return pass(createResampler(from, to), samples, block);
}

/** Resamples to 16 kHz with half the band. */
const narrow = (samples: Float32Array, from: number) =>
  pass(createResampler(from, 16_000, 0, true), samples, samples.length);

function pass(resampler: Resampler, samples: Float32Array, block: number): Float32Array {
  const parts: Float32Array[] = [];
  for (let at = 0; at < samples.length; at += block) parts.push(resampler.push(samples.slice(at, at + block)));
  parts.push(resampler.finish());
  return Float32Array.from(parts.flatMap((part) => [...part]));
}

const power = (samples: Float32Array) => samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
/** Away from the ends, where the filter meets the silence outside. */
const middle = (samples: Float32Array) => samples.slice(1_000, -1_000);
const decibels = (ratio: number) => 10 * Math.log10(ratio);

const rates = [8_000, 11_025, 12_000, 22_050, 24_000, 32_000, 44_100, 48_000];

describe('resampling to 16 kHz', () => {
  it.each(rates)('keeps a 1 kHz tone of %i Hz clean and in place', (rate) => {
    const out = convert(tone(1_000, rate, 1), rate, 16_000);
    const ideal = tone(1_000, 16_000, 1);
    expect(out.length).toBe(16_000);
    const error = out.map((sample, i) => sample - (ideal[i] ?? 0));
    expect(decibels(power(middle(ideal)) / power(middle(error)))).toBeGreaterThan(80);
  });

  it.each([
    [48_000, 10_000],
    [44_100, 12_000],
    [24_000, 9_000],
  ])('rejects what would fold back: %i Hz, tone of %i Hz', (rate, hz) => {
    const input = tone(hz, rate, 1);
    expect(decibels(power(middle(convert(input, rate, 16_000))) / power(input))).toBeLessThan(-70);
  });

  it('is almost as clean at an unusual rate', () => {
    const out = convert(tone(1_000, 44_101, 1), 44_101, 16_000);
    const ideal = tone(1_000, 16_000, 1);
    const error = middle(out).map((sample, i) => sample - (ideal[i + 1_000] ?? 0));
    expect(decibels(power(middle(ideal)) / power(error))).toBeGreaterThan(60);
  });

  it('does not depend on how the sound is cut into blocks', () => {
    const input = tone(440, 44_100, 0.3);
    const whole = convert(input, 44_100, 16_000);
    for (const block of [1, 7, 441, 5_000]) expect(convert(input, 44_100, 16_000, block)).toEqual(whole);
  });

  it('passes 16 kHz through untouched', () => {
    const input = tone(440, 16_000, 0.1);
    expect(convert(input, 16_000, 16_000)).toEqual(input);
  });

  it('gives the length that the input lasts, even for one sample', () => {
    expect(convert(new Float32Array(1), 8_000, 16_000).length).toBe(2);
    expect(convert(new Float32Array(3), 48_000, 16_000).length).toBe(1);
  });
});

describe('A20 narrow resampling', () => {
  const above = rates.filter((rate) => rate > 16_000);

  it.each(above)('A20: keeps tones up to 4 kHz of %i Hz in place', (rate) => {
    for (const hz of [300, 1_000, 3_400, 4_000]) {
      const out = narrow(tone(hz, rate, 1), rate);
      const ideal = tone(hz, 16_000, 1);
      const error = out.map((sample, i) => sample - (ideal[i] ?? 0));
      expect(out.length).toBe(16_000);
      expect(decibels(power(middle(ideal)) / power(middle(error)))).toBeGreaterThan(55);
    }
  });

  it.each([
    [48_000, 12_000],
    [48_000, 15_000],
    [44_100, 19_000],
  ])('A20: rejects what would fold below 4 kHz: %i Hz, tone of %i Hz', (rate, hz) => {
    const input = tone(hz, rate, 1);
    expect(decibels(power(middle(narrow(input, rate))) / power(input))).toBeLessThan(-55);
  });

  it('A20: resamples sound below 16 kHz as ever', () => {
    const input = tone(440, 8_000, 0.1);
    expect(narrow(input, 8_000)).toEqual(convert(input, 8_000, 16_000));
  });
});

describe('mixing to mono', () => {
  it('is the mean of the channels', () => {
    expect(mixDown([Float32Array.of(1, 0), Float32Array.of(0, -1)])).toEqual(Float32Array.of(0.5, -0.5));
  });
});
