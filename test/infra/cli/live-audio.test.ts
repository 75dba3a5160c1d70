import { describe, expect, it } from 'vitest';
import { createFrames, passSeconds, readLiveAudio, toRate } from '../../../infra/cli/live/audio.ts';
import { wav } from '../../wav.ts';

const ramp = Int16Array.from({ length: 2_400 }, (_, at) => at);

describe('R13: a recording as a microphone gives it', () => {
  it('is read from a WAV file', () => {
    expect(readLiveAudio(wav(ramp, 8_000))).toEqual({ audio: { rate: 8_000, samples: ramp } });
    expect(readLiveAudio(wav(ramp, 8_000).subarray(0, 20))).toEqual({
      problem: expect.stringContaining('cannot be streamed: The audio file ends before'),
    });
  });

  it.each([
    ['ID3 this would be an MP3', 'is a file of MP3: a live stream needs a WAV file'],
    ['fLaC and this', 'is a file of FLAC'],
    ['words', 'is not an audio file'],
  ])('%s: the problem is named', (text, problem) => {
    expect(readLiveAudio(new TextEncoder().encode(text))).toEqual({ problem: expect.stringContaining(problem) });
  });

  it('repeats in tenths of a second, with a second of silence between', () => {
    const audio = { rate: 8_000, samples: ramp };
    expect(passSeconds(audio)).toBe(1.3);
    const frame = createFrames(audio);
    const sample = (bytes: Uint8Array, at: number) => new DataView(bytes.buffer).getInt16(at * 2, true);
    expect(frame(0)).toHaveLength(1_600);
    expect([sample(frame(0), 5), sample(frame(2), 799), sample(frame(3), 0), sample(frame(12), 799)]).toEqual([
      5, 2_399, 0, 0,
    ]);
    expect(sample(frame(13), 5)).toBe(5);
  });

  it('is brought to another rate', () => {
    const made = toRate({ rate: 8_000, samples: ramp }, 24_000);
    expect([made.rate, made.samples.length]).toEqual([24_000, 7_200]);
    expect([...made.samples.subarray(0, 7)]).toEqual([0, 0, 1, 1, 1, 2, 2]);
  });
});
