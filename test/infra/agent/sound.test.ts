import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { decodeSound } from '../../../infra/pool/agent/sound/decode.ts';
import { createFlacFrames, frameHeaderBytes } from '../../../infra/pool/agent/sound/flac-frames.ts';
import { createMono } from '../../../infra/pool/agent/sound/mono.ts';
import { limits } from '../../../shared/limits.ts';
import { wavFile } from './fixtures.ts';

const clip = (name: string) => new Uint8Array(readFileSync(path.join(import.meta.dirname, 'clips', name)));

async function* pieces(bytes: Uint8Array, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

interface Decoded {
  readonly samples: Float32Array;
  readonly seconds: number;
  readonly channels: number;
  readonly rate: number;
  readonly refusal?: string;
}

async function decode(bytes: Uint8Array, size = 65_536): Promise<Decoded> {
  const mono = createMono();
  const parts: Float32Array[] = [];
  let channels = 0;
  let rate = 0;
  let refusal: string | undefined;
  for await (const block of decodeSound(pieces(bytes, size))) {
    if (!block.ok) refusal = block.refusal.reason;
    else {
      channels = block.value.channels.length;
      rate = block.value.rate;
      parts.push(...mono.push(block.value));
    }
  }
  parts.push(mono.finish());
  const samples = Float32Array.from(parts.flatMap((part) => [...part]));
  return { samples, seconds: mono.seconds(), channels, rate, ...(refusal !== undefined && { refusal }) };
}

const loudness = (samples: Float32Array) =>
  Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);

// The packages print a line per damaged frame; `main.ts` silences them the same way.
beforeAll(() => {
  vi.spyOn(console, 'error').mockImplementation(() => {});
});

describe('decoding in the pool (issue 3: WAV, FLAC, MP3 and Ogg Opus)', () => {
  it.each([
    ['mono-8k.flac', 8_000, 1],
    ['mono-8k.oga', 8_000, 1],
    ['stereo-44k.mp3', 44_100, 2],
    // mpg123 gives both channels for a mono file.
    ['mono-16k.mp3', 16_000, 2],
    ['mono.opus', 16_000, 1],
    ['stereo.opus', 16_000, 2],
  ])('%s', async (name, rate, channels) => {
    const whole = await decode(clip(name));
    expect(whole.refusal).toBeUndefined();
    expect([whole.rate, whole.channels]).toEqual([rate, channels]);
    // All clips are the same 0.62 s of speech; MP3 without a header keeps the padding of its encoder.
    expect(whole.seconds).toBeGreaterThan(0.61);
    expect(whole.seconds).toBeLessThan(0.73);
    expect(loudness(whole.samples)).toBeGreaterThan(0.02);
    expect(loudness(whole.samples)).toBeLessThan(0.5);
  });

  it.each(['mono-8k.flac', 'mono-8k.oga', 'stereo-44k.mp3', 'mono.opus'])('%s, whatever the pieces', async (name) => {
    const whole = await decode(clip(name));
    const torn = await decode(clip(name), 61);
    expect(torn.samples).toEqual(whole.samples);
  });

  it.each([
    ['audio_truncated', 'mono-8k.flac'],
    ['audio_truncated', 'mono-8k.oga'],
    ['audio_truncated', 'mono.opus'],
  ])('%s: a cut %s', async (reason, name) => {
    const bytes = clip(name);
    expect((await decode(bytes.subarray(0, bytes.length * 0.7))).refusal).toBe(reason);
  });

  it('audio_truncated: a WAV file cut in its data, wherever it is cut', async () => {
    const bytes = wavFile(new Float32Array(8_000).fill(0.1));
    for (const left of [45, 46, 1_000, bytes.length - 2, bytes.length - 1]) {
      expect([left, (await decode(bytes.subarray(0, left))).refusal]).toEqual([left, 'audio_truncated']);
    }
  });

  it('a FLAC file that ends between two frames is cut too, as its header counts samples', async () => {
    const bytes = clip('mono-8k.flac');
    const framer = createFlacFrames();
    const pushed = framer.push(bytes);
    const rest = framer.finish();
    if (!pushed.ok || !rest.ok) throw new Error('fixture');
    const last = [...pushed.value, ...rest.value].at(-1)?.length ?? 0;
    expect((await decode(bytes.subarray(0, bytes.length - last))).refusal).toBe('audio_truncated');
  });

  it('a cut MP3 is a shorter recording, as nothing in it says how long it is', async () => {
    const bytes = clip('mono-16k.mp3');
    const { refusal, seconds } = await decode(bytes.subarray(0, bytes.length / 2));
    expect(refusal).toBeUndefined();
    expect(seconds).toBeLessThan(0.45);
  });

  it.each([
    ['audio_unsupported', 'Vorbis', clip('vorbis.ogg')],
    ['audio_unsupported', 'text', new TextEncoder().encode('hello, is this a recording? '.repeat(10))],
    ['audio_unsupported', 'three bytes', Uint8Array.of(1, 2, 3)],
    ['audio_empty', 'nothing', new Uint8Array(0)],
    ['audio_empty', 'a WAV header alone', wavFile(new Float32Array(0))],
  ])('%s: %s', async (reason, _, bytes) => {
    expect((await decode(bytes)).refusal).toBe(reason);
  });

  it.each(['mono-8k.flac', 'mono-8k.oga', 'mono.opus', 'stereo-44k.mp3'])('damage in %s never throws', async (name) => {
    const good = clip(name);
    for (let step = 0; step < 12; step++) {
      const bytes = good.slice();
      const at = 70 + Math.floor((step * (bytes.length - 80)) / 12);
      bytes.fill((step * 83) & 255, at, at + 40);
      await decode(bytes);
    }
  });

  it('refuses a second stream inside an Ogg file', async () => {
    const opus = clip('mono.opus');
    expect((await decode(Buffer.concat([opus, opus]))).refusal).toBe('audio_invalid');
  });

  it('stops when a recording is longer than it may be, however small its file', async () => {
    const limit = limits.audioSeconds.value;
    let sent = 0;
    async function* endless() {
      yield wavFile(new Float32Array(0), 8_000, 0);
      const second = new Uint8Array(16_000 * 60);
      for (; sent < limit + 600; sent += 60) yield second;
    }
    let last: string | undefined;
    for await (const block of decodeSound(endless())) last = block.ok ? undefined : block.refusal.reason;
    expect(last).toBe('audio_too_long');
    expect(sent).toBeLessThanOrEqual(limit + 60);
  });
});

describe('FLAC framing', () => {
  it('searches damage in one pass and gives up at the longest frame there can be', () => {
    const bytes = clip('mono-8k.flac');
    const framer = createFlacFrames();
    // A header that is right and then nothing but sync words.
    expect(framer.push(bytes.subarray(0, bytes.length * 0.6)).ok).toBe(true);
    const noise = new Uint8Array(65_536).fill(0xff);
    let pushes = 0;
    while (framer.push(noise).ok && pushes < 100) pushes++;
    expect(pushes).toBeLessThan(4);
  });

  it('knows a header from chance by its checksum', () => {
    const bytes = clip('mono-8k.flac');
    const framer = createFlacFrames();
    const frames = framer.push(bytes);
    const first = frames.ok ? frames.value[0] : undefined;
    if (!first) throw new Error('fixture');
    const length = frameHeaderBytes(first.subarray(0, 16)) ?? 0;
    expect(length).toBeGreaterThan(4);
    const changed = first.slice(0, 16);
    changed[4] = (changed[4] ?? 0) ^ 1;
    expect(frameHeaderBytes(changed)).toBe(0);
    expect(frameHeaderBytes(first.subarray(0, 3))).toBeUndefined();
  });
});
