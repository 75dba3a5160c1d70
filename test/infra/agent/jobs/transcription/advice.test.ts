import { describe, expect, it } from 'vitest';
import { createResampler } from '../../../../../infra/pool/agent/audio/resample.ts';
import { createAdviser } from '../../../../../infra/pool/agent/jobs/transcription/advice.ts';
import type { SoundFormat } from '../../../../../shared/speech/format.ts';
import { joinSamples, silence, voice } from '../../fixtures.ts';

function advise(samples: Float32Array, rate = 16_000, format: SoundFormat = 'wav', portion = samples.length) {
  const adviser = createAdviser();
  for (let at = 0; at < samples.length; at += portion) adviser.push(samples.subarray(at, at + portion));
  return adviser.advise({ format, rate });
}

/** A voice with the hiss of its consonants. */
function hissing(seconds: number, rate = 16_000): Float32Array {
  let state = 7;
  return voice(seconds, rate).map((sample) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) | 0;
    return sample + (state / 2 ** 31) * 0.01;
  });
}

function convert(samples: Float32Array, from: number, to: number): Float32Array {
  const resampler = createResampler(from, to);
  return joinSamples(resampler.push(samples), resampler.finish());
}

describe('advice on recordings (M6)', () => {
  it('a lossless recording at 16 kHz or more gets none', () => {
    expect(advise(hissing(5))).toEqual([]);
    expect(advise(hissing(5), 48_000, 'flac')).toEqual([]);
  });

  it('lossy formats are noticed', () => {
    expect(advise(hissing(5), 48_000, 'mp3')).toEqual(['lossy']);
    expect(advise(hissing(5), 48_000, 'opus')).toEqual(['lossy']);
  });

  it('a rate under 16 kHz is reported as low, not as resampled', () => {
    expect(advise(convert(hissing(5, 8_000), 8_000, 16_000), 8_000)).toEqual(['rate_low']);
  });

  it('a telephone band that was converted up is noticed, whatever the file says', () => {
    const up = convert(hissing(5, 8_000), 8_000, 16_000);
    expect(advise(up, 16_000)).toEqual(['resampled']);
    expect(advise(up, 48_000)).toEqual(['resampled']);
  });

  it('silence and a single click say nothing about the band', () => {
    expect(advise(silence(20))).toEqual([]);
    const click = silence(5);
    click[3] = 0.9;
    expect(advise(click)).toEqual([]);
  });

  it('a recording that was too loud is noticed', () => {
    const loud = hissing(5).map((sample) => Math.max(-1, Math.min(1, sample * 40)));
    expect(advise(loud)).toEqual(['clipped']);
  });

  it('the same in whatever portions the sound comes', () => {
    const up = convert(hissing(5, 8_000), 8_000, 16_000);
    expect(advise(up, 16_000, 'wav', 37)).toEqual(['resampled']);
  });
});
