import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { createVoiceDetector, UNIT_SAMPLES } from '../../../../../infra/pool/agent/asr/vad/detect.ts';
import { listen } from '../../../../../infra/pool/agent/asr/vad/listen.ts';
import { decodeSound } from '../../../../../infra/pool/agent/audio/decode.ts';
import { createMono } from '../../../../../infra/pool/agent/audio/mono.ts';
import { createResampler } from '../../../../../infra/pool/agent/audio/resample.ts';
import { TURN_S } from '../../../../../infra/pool/agent/settings/limits.ts';
import { flacFrames, flacHead, joinSamples, oggPage, silence, voice, wavFile } from '../../fixtures.ts';

const clip = (name: string) => new Uint8Array(readFileSync(path.join(import.meta.dirname, '../../clips', name)));

/** Frames that were given to the voice detector. */
let asked = 0;
vi.mock('@echogarden/fvad-wasm', async (original) => {
  const { default: load } = await original<typeof import('@echogarden/fvad-wasm')>();
  return {
    default: async () => {
      const module = await load();
      let process = module._fvad_process;
      // The module writes itself a shorter way to the function at the first call.
      Object.defineProperty(module, '_fvad_process', {
        get: () => {
          asked++;
          return process;
        },
        set: (shorter) => {
          process = shorter;
        },
      });
      return module;
    },
  };
});

beforeAll(() => {
  vi.spyOn(console, 'error').mockImplementation(() => {});
});

async function* once(bytes: Uint8Array) {
  yield bytes;
}

const FRAMES = 60;
const nativeFlac = Buffer.concat([flacHead(FRAMES * 65_535), ...flacFrames(FRAMES, 1)]);
const oggFlac = Buffer.concat([
  oggPage(0, [Buffer.concat([Uint8Array.of(0x7f), Buffer.from('FLAC'), Uint8Array.of(1, 0, 0, 1), flacHead()])]),
  oggPage(1, [Uint8Array.of(0x84, 0, 0, 0)]),
  oggPage(2, flacFrames(FRAMES, 1), 4),
]);
/** Ten minutes of frames that hold nothing, 8 kbit/s at 24 kHz. */
const denseMp3 = Buffer.concat(
  Array.from({ length: 25_000 }, () => Buffer.concat([Uint8Array.of(0xff, 0xf3, 0x14, 0xc4), new Uint8Array(20)])),
);

/** Packets of 60 ms of one byte each: a header page, a page of tags, pages of 255 packets. */
function denseOpus(pages: number): Uint8Array {
  const head = Buffer.from('4f707573486561640101380180bb0000000000', 'hex');
  const tags = Buffer.concat([Buffer.from('OpusTags'), new Uint8Array(8)]);
  const packets = Array.from({ length: 255 }, () => Uint8Array.of(0x18));
  const samples = (count: number) => count * packets.length * 2_880;
  return Buffer.concat([
    oggPage(0, [head]),
    oggPage(1, [tags]),
    ...Array.from({ length: pages }, (_, i) => oggPage(i + 2, packets, i === pages - 1 ? 4 : 0, samples(i + 1))),
  ]);
}

/** Decodes and listens, and says how much sound passed at most between two beats of the event loop. */
async function measure(bytes: Uint8Array) {
  let most = 0;
  let since = 0;
  let seconds = 0;
  let done = false;
  const beat = () => {
    since = 0;
    if (!done) setImmediate(beat);
  };
  setImmediate(beat);
  async function* counted() {
    for await (const block of decodeSound(once(bytes))) {
      if (block.ok) {
        const length = (block.value.channels[0]?.length ?? 0) / block.value.rate;
        since += length;
        seconds += length;
        most = Math.max(most, since);
      }
      yield block;
    }
  }
  let heard = 0;
  for await (const hearing of listen(counted())) {
    if (!hearing.ok) throw new Error(JSON.stringify(hearing.refusal));
    if (hearing.value.type === 'totals') heard = hearing.value.totals.seconds;
  }
  done = true;
  return { most, seconds, heard };
}

describe('fairness: small files of long audio leave turns to others', () => {
  it.each<[string, number, Uint8Array]>([
    ['FLAC', (FRAMES * 65_535) / 8_000, nativeFlac],
    ['FLAC in Ogg', (FRAMES * 65_535) / 8_000, oggFlac],
    ['MP3', 600, denseMp3],
    ['Opus', 4 * 255 * 0.06, denseOpus(4)],
    ['WAV', 120, wavFile(silence(120, 8_000), 8_000)],
  ])('%s', async (_, length, bytes) => {
    const { most, seconds, heard } = await measure(bytes);
    expect(seconds).toBeGreaterThan(length - 1);
    expect(heard).toBeCloseTo(seconds, 3);
    // Once per bound; twice it where a beat and a turn change places.
    expect(most).toBeLessThanOrEqual(2 * TURN_S);
  });

  it('FLAC is decoded one frame at a time, on demand', async () => {
    const sound = decodeSound(once(Buffer.concat([flacHead(), ...flacFrames(2), clip('mono-8k.flac')])));
    const first = await sound.next();
    if (first.done || !first.value.ok) throw new Error('no block');
    // Damage behind it was not read yet.
    expect(first.value.value.channels[0]?.length).toBe(8_000 * TURN_S);
    await sound.return(undefined);
  });

  it('stops on abort in the middle of the received bytes', async () => {
    const abort = new AbortController();
    let seconds = 0;
    const decodeAll = async () => {
      for await (const block of decodeSound(once(nativeFlac), abort.signal)) {
        seconds += block.ok ? (block.value.channels[0]?.length ?? 0) / block.value.rate : 0;
        if (seconds >= 3) abort.abort();
      }
    };
    await expect(decodeAll()).rejects.toThrow();
    expect(seconds).toBeLessThan(3 + 2 * TURN_S);
  });
});

describe('digital silence is cheap and changes no result', () => {
  const pieces = [silence(0.5), voice(0.4), silence(3), voice(0.3), silence(1.3), voice(0.2), silence(0.2)];
  const speech = joinSamples(...pieces);

  it.each([8_000, 44_100])('resampled from %i Hz', (from) => {
    const convert = (samples: Float32Array) => {
      const resampler = createResampler(from, 16_000);
      return joinSamples(resampler.push(samples), resampler.finish());
    };
    const cheap = convert(speech);
    // With the least number there is in the place of 0, no window is silent and every sample is computed.
    const full = convert(speech.map((sample) => sample || 2 ** -149));
    expect(cheap.length).toBe(full.length);
    const differences = cheap.map((sample, i) => Math.abs(sample - (full[i] ?? 0)));
    expect(differences.reduce((most, difference) => Math.max(most, difference), 0)).toBeLessThan(1e-40);
    expect(cheap.some((sample) => sample !== 0)).toBe(true);
  });

  it('the silence inside a filter is not skipped while it still reaches sound', () => {
    const impulse = new Float32Array(400);
    impulse[200] = 1;
    const resampler = createResampler(8_000, 16_000);
    const out = joinSamples(resampler.push(impulse), resampler.finish());
    const reach = [...out.keys()].filter((i) => out[i] !== 0);
    // 32 crossings on each side of the impulse, at twice the rate.
    expect(reach[0]).toBeLessThan(400 - 60);
    expect(reach.at(-1)).toBeGreaterThan(400 + 60);
  });

  it('the voice detector says the same about what follows, however long the silence was', async () => {
    const run = async (units: number) => {
      const detector = await createVoiceDetector();
      const hear = (samples: Float32Array) =>
        Array.from({ length: Math.floor(samples.length / UNIT_SAMPLES) }, (_, i) =>
          detector.hasVoice(samples.subarray(i * UNIT_SAMPLES, (i + 1) * UNIT_SAMPLES)),
        );
      asked = 0;
      hear(voice(1.5));
      const quiet = hear(new Float32Array(units * UNIT_SAMPLES));
      const after = hear(speech);
      detector.free();
      return { quiet, after, asked };
    };
    const short = await run(20);
    const long = await run(5_000);
    expect(long.after).toEqual(short.after);
    expect(long.quiet.slice(0, 20)).toEqual(short.quiet);
    expect(long.quiet.slice(20).some(Boolean)).toBe(false);
    // It was asked for a second of the long silence, five frames a unit, and for what follows.
    expect(short.asked).toBeGreaterThan(0);
    expect(long.asked).toBe(short.asked);
    // Hangover: the detector goes on hearing for a moment, so the first units may not be skipped.
    expect(long.quiet[0]).toBe(true);
  });
});

it('a recording in pieces is the recording', async () => {
  const whole = wavFile(voice(3.7, 44_100), 44_100);
  const mono = createMono();
  const parts: Float32Array[] = [];
  for await (const block of decodeSound(once(whole))) if (block.ok) parts.push(...mono.push(block.value));
  parts.push(mono.finish());
  expect(joinSamples(...parts).length).toBe(Math.round(3.7 * 16_000));
});
