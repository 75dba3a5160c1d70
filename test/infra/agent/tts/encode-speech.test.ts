import { describe, expect, it } from 'vitest';
import { decodeSound } from '../../../../infra/pool/agent/audio/decode.ts';
import { openSpeechEncoder } from '../../../../infra/pool/agent/tts/encode-speech.ts';
import { toALaw, toMuLaw } from '../../../../infra/pool/agent/tts/g711.ts';
import { aLawTable, muLawTable } from '../../../../shared/speech/samples.ts';
import type { SpeechFormat } from '../../../../shared/speech/speak.ts';

const RATE = 16_000;
const tone = (from: number, samples: number) =>
  Int16Array.from({ length: samples }, (_, at) => 9_000 * Math.sin((2 * Math.PI * 300 * (from + at)) / RATE));

/** Encodes 1.3 s of a tone in two pieces. */
function encode(format: SpeechFormat): Uint8Array {
  const encoder = openSpeechEncoder(format);
  const pieces = [encoder.push(tone(0, 12_345)), encoder.push(tone(12_345, 8_455)), encoder.finish()];
  encoder.close();
  return Buffer.concat(pieces);
}

async function* whole(file: Uint8Array) {
  yield file;
}

/** Returns seconds and mean power of an encoded file, as the agent's decoders read it. */
async function decode(file: Uint8Array) {
  let [seconds, samples, power] = [0, 0, 0];
  for await (const block of decodeSound(whole(file))) {
    if (!block.ok) throw new Error(block.refusal.reason);
    const [sound = new Float32Array(0)] = block.value.channels;
    for (const sample of sound) power += sample * sample;
    samples += sound.length;
    seconds += sound.length / block.value.rate;
  }
  return { seconds, power: power / samples };
}

const TONE_POWER = (9_000 / 32_768) ** 2 / 2;

describe('R2 encoded speech', () => {
  it.each<SpeechFormat>([
    { encoding: 'linear16', container: 'wav', sampleRate: 16_000 },
    { encoding: 'linear16', container: 'wav', sampleRate: 24_000 },
    { encoding: 'mulaw', container: 'wav', sampleRate: 8_000 },
    { encoding: 'alaw', container: 'wav', sampleRate: 8_000 },
    { encoding: 'opus', container: 'ogg', sampleRate: 16_000 },
  ])('$encoding in $container at $sampleRate Hz decodes to the same sound', async (format) => {
    const { seconds, power } = await decode(encode(format));
    expect(seconds).toBeCloseTo(1.3, 3);
    expect(power / TONE_POWER).toBeGreaterThan(0.9);
    expect(power / TONE_POWER).toBeLessThan(1.1);
  });

  it('has only samples without a container', () => {
    expect(encode({ encoding: 'linear16', container: 'none', sampleRate: 24_000 })).toHaveLength(1.3 * 24_000 * 2);
    expect(encode({ encoding: 'alaw', container: 'none', sampleRate: 8_000 })).toHaveLength(1.3 * 8_000);
  });

  it('encodes each code of G.711 as itself', () => {
    const back = (table: Float32Array, code: (sample: number) => number) =>
      Array.from(table, (sample) => (table[code(Math.round(sample * 32_768))] ?? Number.NaN) - sample);
    expect(back(muLawTable, toMuLaw)).toEqual(Array(256).fill(0));
    expect(back(aLawTable, toALaw)).toEqual(Array(256).fill(0));
  });
});
