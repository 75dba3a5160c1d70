import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { AUDIO_S, decodeSound } from '../../../../infra/pool/agent/audio/decode.ts';
import { createFlacFrames, frameHeaderBytes } from '../../../../infra/pool/agent/audio/flac-frames.ts';
import { createMono } from '../../../../infra/pool/agent/audio/mono.ts';
import { mp3FrameBytes } from '../../../../infra/pool/agent/audio/mp3-frames.ts';
import { createOggGuard } from '../../../../infra/pool/agent/audio/ogg.ts';
import { oggPages, wavFile, withCrc } from '../fixtures.ts';

const clip = (name: string) => new Uint8Array(readFileSync(path.join(import.meta.dirname, '../clips', name)));

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

  it('a FLAC file cut between two frames is refused by its sample count', async () => {
    const bytes = clip('mono-8k.flac');
    const framer = createFlacFrames();
    const pushed = framer.push(bytes);
    const rest = framer.finish();
    if (!pushed.ok || !rest.ok) throw new Error('fixture');
    const last = [...pushed.value, ...rest.value].at(-1)?.length ?? 0;
    expect((await decode(bytes.subarray(0, bytes.length - last))).refusal).toBe('audio_truncated');
  });

  it.each(['mono.opus', 'vorbis.ogg', 'mono-8k.oga'])('U1: %s without its last page is refused', async (name) => {
    const bytes = clip(name);
    const last = Buffer.from(bytes).lastIndexOf('OggS');
    expect((await decode(bytes)).refusal).toBeUndefined();
    expect((await decode(bytes.subarray(0, last))).refusal).toBe('audio_truncated');
  });

  it.each(['mono-16k.mp3', 'stereo-44k.mp3'])('a cut %s is noticed inside a frame, not between two', async (name) => {
    const bytes = clip(name);
    // Every frame of these clips is found by its header: from the first one, each says where the next one is.
    const tagBytes = String.fromCharCode(...bytes.subarray(0, 3)) === 'ID3' ? 10 + (bytes[9] ?? 0) : 0;
    const starts: number[] = [];
    for (let at = tagBytes; at < bytes.length; at += mp3FrameBytes(bytes.subarray(at, at + 4))) starts.push(at);
    const middle = starts[starts.length >> 1] ?? 0;
    const between = await decode(bytes.subarray(0, middle));
    expect(between.refusal).toBeUndefined();
    expect(between.seconds).toBeLessThan(0.45);
    expect((await decode(bytes.subarray(0, middle + 20))).refusal).toBe('audio_truncated');
    expect((await decode(bytes.subarray(0, bytes.length - 1))).refusal).toBe('audio_truncated');
    expect((await decode(bytes)).refusal).toBeUndefined();
  });

  it('a tag or damage behind the last frame of an MP3 is no cut', async () => {
    const bytes = clip('mono-16k.mp3');
    const tag = Buffer.alloc(128, 'TAG title');
    expect((await decode(Buffer.concat([bytes, tag]))).refusal).toBeUndefined();
    // One header that stands alone promises nothing.
    expect((await decode(Buffer.concat([bytes, tag, bytes.subarray(0, 20)]))).refusal).toBeUndefined();
  });

  it('C11 an MP3 of which much is no frame is no shorter recording', async () => {
    const bytes = clip('mono-16k.mp3');
    const replaced = Buffer.concat([...Array.from({ length: 10 }, () => bytes), clip('mono-8k.flac')]);
    const padded = (fill: number, size: number) => Buffer.concat([bytes.subarray(0, 2_000), Buffer.alloc(size, fill)]);
    for (const broken of [padded(0xff, 300_000), padded(0x41, 4_000), replaced])
      expect((await decode(broken)).refusal).toBe('audio_invalid');
    // Much of a long one, even where it is a small share.
    const long = Buffer.concat([...Array.from({ length: 500 }, () => bytes), Buffer.alloc(70_000, 0x41)]);
    expect((await decode(long)).refusal).toBe('audio_invalid');
  });

  it('an MP3 may have tags of any size, before, between and behind, and zeros', async () => {
    const bytes = clip('mono-16k.mp3');
    const id3 = Buffer.concat([Uint8Array.of(0x49, 0x44, 0x33, 4, 0, 0, 0, 2, 0, 0), Buffer.alloc(2 ** 15, 0x41)]);
    const items = Buffer.alloc(100_000, 0x41);
    const ape = (flag: number) => {
      const head = Buffer.alloc(32);
      head.write('APETAGEX');
      head.writeUInt32LE(items.length + 32, 12);
      head[23] = flag;
      return head;
    };
    const tag = Buffer.concat([ape(0xa0), items, ape(0x80)]);
    const v1 = Buffer.alloc(128, 'TAG title');
    const file = Buffer.concat([id3, bytes, Buffer.alloc(200_000), id3, bytes, tag, v1]);
    for (const size of [7, 65_536]) expect((await decode(file, size)).refusal).toBeUndefined();
  });

  it.each([
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

  it.each(['mono.opus', 'vorbis.ogg', 'mono-8k.oga'])(
    'refuses %s with a lost, repeated, swapped or damaged page',
    async (name) => {
      const [head = new Uint8Array(), tags = head, sound = head] = oggPages(clip(name));
      const damaged = sound.slice();
      damaged[damaged.length - 9] = (damaged.at(-9) ?? 0) ^ 1;
      expect((await decode(Buffer.concat([head, tags, sound]))).refusal).toBeUndefined();
      for (const pages of [[sound], [sound, tags], [tags, tags, sound], [tags, sound, sound], [tags, damaged]]) {
        expect((await decode(Buffer.concat([head, ...pages]))).refusal).toBe('audio_invalid');
      }
    },
  );

  it('stops when a recording is longer than it may be, however small its file', async () => {
    const limit = AUDIO_S;
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
  it('scans damage once and gives up at the longest possible frame', () => {
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

describe('Ogg packets', () => {
  it('are put together across pieces and pages, and none is kept beyond its bound', () => {
    const sizes = [1, 254, 255, 510, 600, 0, 70_000];
    const packets = sizes.map((size, i) => new Uint8Array(size).fill(i + 1));
    const lacing = sizes.flatMap((size) => [...Array<number>(Math.floor(size / 255)).fill(255), size % 255]);
    const body = Buffer.concat(packets);
    const pages: Uint8Array[] = [];
    let at = 0;
    for (let i = 0; i < lacing.length; i += 100) {
      const table = lacing.slice(i, i + 100);
      const bytes = table.reduce((sum, size) => sum + size, 0);
      const header = Buffer.alloc(27);
      header.write('OggS');
      header[5] = (i === 0 ? 2 : 0) | (i + 100 >= lacing.length ? 4 : 0);
      header[18] = pages.length;
      header[26] = table.length;
      pages.push(withCrc(Buffer.concat([header, Uint8Array.from(table), body.subarray(at, at + bytes)])));
      at += bytes;
    }
    const file = Buffer.concat(pages);
    for (const size of [1, 7, 300, file.length]) {
      const found: Uint8Array[] = [];
      const guard = createOggGuard((packet) => found.push(packet));
      for (let i = 0; i < file.length; i += size) expect(guard.push(file.subarray(i, i + size)).ok).toBe(true);
      expect(guard.finish().ok).toBe(true);
      expect(found.map((packet) => [packet.length, packet.every((byte) => byte === packet[0])])).toEqual(
        sizes.map((length) => [length, true]),
      );
    }
  });
});
