import { readFileSync } from 'node:fs';
import path from 'node:path';
import { decoder as openAmrDecoder } from '@audio/decode-amr';
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { enableAac } from '../../../../infra/pool/agent/audio/aac.ts';
import { decodeSound } from '../../../../infra/pool/agent/audio/decode.ts';
import type { Demuxer } from '../../../../infra/pool/agent/audio/demuxer.ts';
import { createMp4Demuxer } from '../../../../infra/pool/agent/audio/mp4.ts';
import { createHeldBudget } from '../../../../infra/pool/agent/audio/mp4-held.ts';
import { MiB } from '../../../../shared/bytes.ts';
import { publicText, type Refusal } from '../../../../shared/refusal.ts';
import { randomOf } from '../../../fake/random.ts';
import { firstSeed, runs } from '../../../seeds.ts';

const clip = (name: string) => new Uint8Array(readFileSync(path.join(import.meta.dirname, '../clips', name)));

async function decode(bytes: Uint8Array, size = 65_536) {
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }
  const channels: number[][] = [];
  let rate = 0;
  let refusal: Refusal | undefined;
  for await (const block of decodeSound(pieces())) {
    if (block.ok) {
      rate = block.value.rate;
      for (const [i, samples] of block.value.channels.entries()) {
        channels[i] ??= [];
        for (const sample of samples) channels[i].push(sample);
      }
    } else refusal = block.refusal;
  }
  return { rate, channels, seconds: (channels[0]?.length ?? 0) / (rate || 1), refusal };
}

const concat = (...parts: Uint8Array[]) => new Uint8Array(Buffer.concat(parts));

const names = [
  'index-first.m4a',
  'index-last.m4a',
  'fragmented.mp4',
  'mono-44k.aac',
  'opus.mp4',
  'opus.webm',
  'vorbis.ogg',
  'vorbis.webm',
  'adpcm-ms.wav',
  'adpcm-ima.wav',
  'mono-8k.amr',
];

beforeAll(() => {
  vi.spyOn(console, 'error').mockImplementation(() => {});
});

it('U1 AAC is refused by name until it is turned on', async () => {
  for (const [name, container] of [
    ['index-first.m4a', 'MP4'],
    ['mono-44k.aac', 'ADTS'],
  ] as const) {
    const { refusal } = await decode(clip(name));
    expect(refusal && publicText(refusal)).toContain(`The file holds AAC in ${container}, which is not turned on here`);
  }
});

describe('containers', () => {
  beforeAll(enableAac);

  it.each([
    ['index-first.m4a', 44_100],
    ['index-last.m4a', 44_100],
    ['fragmented.mp4', 44_100],
    ['mono-44k.aac', 44_100],
    ['mono-8k.amr', 8_000],
    ['opus.mp4', 16_000],
    ['opus.webm', 16_000],
    ['vorbis.ogg', 16_000],
    ['vorbis.webm', 16_000],
  ])('U1 %s is decoded, whatever the pieces', async (name, rate) => {
    const whole = await decode(clip(name));
    expect(whole.refusal).toBeUndefined();
    expect([whole.rate, whole.channels.length]).toEqual([rate, 1]);
    // All clips are the same 0.62 s of speech; encoders add padding.
    expect(whole.seconds).toBeGreaterThan(0.61);
    expect(whole.seconds).toBeLessThan(0.7);
    const [samples = []] = whole.channels;
    const loudness = Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length);
    expect(loudness).toBeGreaterThan(0.02);
    expect(loudness).toBeLessThan(0.5);
    expect((await decode(clip(name), 61)).channels).toEqual(whole.channels);
  });

  it('U1 the same packets give the same samples in every container', async () => {
    for (const [name, others] of [
      ['mono.opus', ['opus.mp4', 'opus.webm']],
      ['stereo.opus', ['opus-stereo.webm']],
      ['vorbis.ogg', ['vorbis.webm']],
    ] as const) {
      const ogg = await decode(clip(name));
      const length = ogg.channels[0]?.length;
      for (const other of others) {
        const { channels } = await decode(clip(other));
        expect(channels.map((samples) => samples.slice(0, length))).toEqual(ogg.channels);
      }
    }
    const last = await decode(clip('index-last.m4a'));
    expect((await decode(clip('index-first.m4a'))).channels).toEqual(last.channels);
  });

  it.each(names)('U1 a cut %s is refused', async (name) => {
    const bytes = clip(name);
    for (const share of [0.3, 0.6, 0.9]) {
      const { refusal } = await decode(bytes.subarray(0, Math.floor(bytes.length * share)));
      expect(['audio_truncated', 'audio_invalid']).toContain(refusal?.reason);
    }
  });

  /** Changes the first bytes equal to `from`. */
  function replace(name: string, from: string | number[], to: string | number[]): Uint8Array {
    const file = Buffer.from(clip(name));
    const at = file.indexOf(typeof from === 'string' ? Buffer.from(from, 'latin1') : Uint8Array.from(from));
    if (at < 0) throw new Error('fixture');
    file.set(typeof to === 'string' ? Buffer.from(to, 'latin1') : to, at);
    return new Uint8Array(file);
  }

  it.each([
    [
      'HE-AAC in MP4; record AAC-LC or Opus',
      () => replace('index-first.m4a', [0x05, 0x80, 0x80, 0x80, 5, 0x12], [0x05, 0x80, 0x80, 0x80, 5, 0x2a]),
    ],
    ['Apple Lossless in MP4', () => replace('index-first.m4a', 'mp4a\0\0\0\0', 'alac\0\0\0\0')],
    ['MP3 in MP4', () => replace('index-first.m4a', [0x40, 0x15], [0x6b, 0x15])],
    ['MP4 without a track of sound', () => replace('index-first.m4a', 'soun', 'vide')],
    [
      'AAC Main in ADTS; record AAC-LC or Opus',
      () => Uint8Array.from(clip('mono-44k.aac'), (byte, i) => (i === 2 ? byte & 0x3f : byte)),
    ],
  ])('U1 a refusal names %s', async (found, file) => {
    const { refusal } = await decode(file());
    expect(refusal && publicText(refusal)).toContain(`The file holds ${found}.`);
  });

  /** Opens a box and pushes `pushes` MiB of it. Returns refusals and types of items. */
  function pushBox(demuxer: Demuxer, type: string, size: number, pushes: number): string[] {
    const head = Uint8Array.from([...u32(16), ...Buffer.from('ftypisom0000'), ...u32(size), ...Buffer.from(type)]);
    return [head, ...Array<Uint8Array>(pushes).fill(new Uint8Array(MiB))].flatMap((bytes) =>
      [...demuxer.push(bytes)].map((item) => (item.type === 'refused' ? publicText(item.refusal) : item.type)),
    );
  }

  it('C10 an index behind the sound holds bounded memory', () => {
    const resultsOf = (pushes: number) => pushBox(createMp4Demuxer(createHeldBudget()), 'mdat', 2 ** 30, pushes);
    expect([resultsOf(64), resultsOf(65)]).toEqual([[], [expect.stringContaining('write the index first')]]);
  });

  it.each(['mdat', 'moov', 'moof'])('C10 recordings share the memory of %s, and give it back', (type) => {
    const budget = createHeldBudget(3 * MiB);
    const push = (demuxer: Demuxer) => pushBox(demuxer, type, 16 * MiB, 2);
    const first = createMp4Demuxer(budget);
    expect(push(first)).toEqual([]);
    expect(push(createMp4Demuxer(budget))).toEqual(['The pool is busy.']);
    first.free?.();
    expect(push(createMp4Demuxer(budget))).toEqual([]);
  });

  it('C10 a fragment gives back the memory of the former one', () => {
    const file = clip('fragmented.mp4');
    const at = Buffer.from(file).indexOf('moof') - 4;
    const fragment = file.subarray(at, Buffer.from(file).indexOf('mfra') - 4);
    // The index and two of the five fragments fit.
    const demuxer = createMp4Demuxer(createHeldBudget(1_400));
    const items = [file.subarray(0, at), ...Array<Uint8Array>(5).fill(fragment)].flatMap((bytes) => [
      ...demuxer.push(bytes),
    ]);
    expect(new Set(items.map(({ type }) => type))).toEqual(new Set(['track', 'packet']));
  });

  const wideFrame = Uint8Array.from({ length: 61 }, (_, i) => (i === 0 ? 0x44 : (i * 37) & 255));
  it('U1 AMR-WB is decoded, with frames without data, byte by byte', async () => {
    const file = concat(Buffer.from('#!AMR-WB\n'), wideFrame, Uint8Array.of(0x7c, 0x7c), wideFrame);
    const whole = await decode(file);
    expect([whole.refusal, whole.rate, whole.seconds]).toEqual([undefined, 16_000, 0.08]);
    expect((await decode(file, 1)).channels).toEqual(whole.channels);
  });

  it.each([
    ['of several channels', '#!AMR_MC1.0\n', wideFrame, 'audio_unsupported'],
    ['of a reserved frame type', '#!AMR-WB\n', Uint8Array.of(0x54, 0, 0), 'audio_invalid'],
    ['of frames with padding', '#!AMR\n', Uint8Array.of(0x05), 'audio_invalid'],
    ['without a frame', '#!AMR\n', Uint8Array.of(), 'audio_invalid'],
  ])('U1 AMR %s is refused', async (_, magic, frames, reason) => {
    expect((await decode(concat(Buffer.from(magic), frames))).refusal?.reason).toBe(reason);
  });

  describe('AMR decoding', () => {
    /** Records the bytes given to the decoder package. */
    async function spyOnDecoder() {
      const instance = await openAmrDecoder();
      const spy = vi.spyOn(Object.getPrototypeOf(instance) as typeof instance, 'decode');
      instance.free();
      onTestFinished(() => spy.mockRestore());
      return () => spy.mock.calls.reduce((sum, [bytes]) => sum + bytes.byteLength, 0);
    }
    async function* once(bytes: Uint8Array) {
      yield bytes;
    }

    it.each(['#!AMR\n', '#!AMR-WB\n'])('C10 endless AMR silence is refused after decoding 1 s: %j', async (magic) => {
      const bytesDecoded = await spyOnDecoder();
      const file = concat(Buffer.from(magic), new Uint8Array(60_000).fill(0x7c));
      let refusal: Refusal | undefined;
      for await (const block of decodeSound(once(file), undefined, 600)) if (!block.ok) refusal = block.refusal;
      expect([refusal?.reason, bytesDecoded()]).toEqual(['audio_too_long', magic.length + 50]);
    });

    it('U1 AMR keeps its length and fades before a long gap turns silent', async () => {
      const speech = clip('mono-8k.amr');
      const gap = new Uint8Array(300).fill(0x7c);
      const { seconds, channels } = await decode(concat(speech, gap, speech.subarray(6)));
      const alone = await decode(speech);
      expect(seconds).toBeCloseTo(2 * alone.seconds + 6);
      const at = Math.round(alone.seconds * 8_000);
      const fade = channels[0]?.slice(at + 7_840, at + 8_000) ?? [];
      expect(Math.max(...fade.map(Math.abs))).toBeLessThan(0.001);
    });

    it('C10 AMR decoding stops when its request is aborted', async () => {
      const bytesDecoded = await spyOnDecoder();
      const abort = new AbortController();
      const file = concat(Buffer.from('#!AMR-WB\n'), ...Array<Uint8Array>(500).fill(wideFrame));
      const reading = (async () => {
        for await (const _ of decodeSound(once(file), abort.signal)) abort.abort();
      })();
      await expect(reading).rejects.toThrow();
      // One second is 50 frames.
      expect(bytesDecoded()).toBeLessThan(60 * wideFrame.length);
    });
  });

  const element = (id: number[], body: Uint8Array | number[]) =>
    concat(Uint8Array.from([...id, 0x08, 0, 0, 0, body.length]), Uint8Array.from(body));
  /** A WebM file of one block. */
  const webmOf = (...block: number[]) => {
    const file = clip('opus.webm');
    const cluster = Buffer.from(file).indexOf(Uint8Array.of(0x1f, 0x43, 0xb6, 0x75));
    const head = file.slice(0, cluster);
    // The size of the segment becomes unknown, as recorders write it.
    const segment = Buffer.from(head).indexOf(Uint8Array.of(0x18, 0x53, 0x80, 0x67));
    head.set([1, 255, 255, 255, 255, 255, 255, 255], segment + 4);
    return concat(head, element([0xa3], block));
  };

  const u32 = (value: number) => [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255];
  const box = (type: string, ...body: (Uint8Array | number[])[]) => {
    const bytes = Buffer.concat(body.map((part) => Uint8Array.from(part)));
    return concat(Uint8Array.from(u32(bytes.length + 8)), Buffer.from(type), bytes);
  };
  const head = box('ftyp', [0, 0, 0, 0]);
  const tableOf = (type: string, ...words: number[]) => box(type, words.flatMap(u32));

  /** Replaces the table of a file whose index comes first. */
  function withTable(type: string, table: Uint8Array): Uint8Array {
    const file = Buffer.from(clip('index-first.m4a'));
    const at = file.indexOf(type) - 4;
    const size = file.readUInt32BE(at);
    if (table.length > size) throw new Error('fixture');
    return concat(
      file.subarray(0, at),
      table,
      box('free', new Uint8Array(size - table.length)).subarray(0, size - table.length),
      file.subarray(at + size),
    );
  }

  it.each([
    ['boxes without end', () => concat(head, ...Array.from({ length: 9_000 }, () => box('free'))), 'audio_invalid'],
    ['a box of 4 bytes', () => concat(head, Uint8Array.from([...u32(4), 0x6d, 0x6f, 0x6f, 0x76])), 'audio_invalid'],
    ['an index of 4 GB', () => concat(head, Uint8Array.from(u32(0xffff_ffff)), Buffer.from('moov')), 'audio_invalid'],
    ['an index inside itself', () => concat(head, box('moov', box('moov', box('moov')))), 'audio_unsupported'],
    [
      'sound in too many boxes',
      () => concat(head, ...Array.from({ length: 99 }, () => box('mdat', [1]))),
      'audio_invalid',
    ],
    [
      'four billion packets of nothing',
      () => withTable('stsz', tableOf('stsz', 0, 0, 0xffff_ffff, 0)),
      'audio_invalid',
    ],
    ['four billion packets of a byte', () => withTable('stsz', tableOf('stsz', 0, 1, 0xffff_ffff)), 'audio_invalid'],
    ['packets of 4 GB', () => withTable('stsz', tableOf('stsz', 0, 0xffff_ffff, 9)), 'audio_invalid'],
    ['a count beyond its table', () => withTable('stsz', tableOf('stsz', 0, 0, 0xffff_ffff, 300)), 'audio_invalid'],
    ['packets outside the file', () => withTable('stco', tableOf('stco', 0, 1, 0x7fff_ffff)), 'audio_truncated'],
    ['packets before the sound', () => withTable('stco', tableOf('stco', 0, 1, 8)), 'audio_invalid'],
    ['a block of an undeclared track', () => webmOf(0x82, 0, 0, 0, 8, 8), 'audio_invalid'],
    ['a block of an empty packet', () => webmOf(0x81, 0, 0, 0), 'audio_invalid'],
    ['lacing beyond its block', () => webmOf(0x81, 0, 0, 2, 9, 255, 255, 1), 'audio_invalid'],
    ['lacing of 256 empty packets', () => webmOf(0x81, 0, 0, 2, 255, ...Array<number>(100).fill(0)), 'audio_invalid'],
    ['EBML lacing below zero', () => webmOf(0x81, 0, 0, 6, 2, 0x81, 0x80, 8, 8, 8), 'audio_invalid'],
    ['fixed lacing that does not divide', () => webmOf(0x81, 0, 0, 4, 1, 8, 8, 8), 'audio_invalid'],
    [
      'an element of unknown size',
      () => concat(element([0x1a, 0x45, 0xdf, 0xa3], []), Uint8Array.of(0xec, 0xff)),
      'audio_invalid',
    ],
    [
      'a frame without bytes',
      () => Uint8Array.from(clip('mono-44k.aac'), (byte, i) => (i === 4 || i === 5 ? 0 : byte)),
      'audio_invalid',
    ],
  ])('U1 %s is refused', async (_, file, reason) => {
    expect((await decode(file())).refusal?.reason).toBe(reason);
  });

  /** An AIFF file of one channel at 8 kHz. */
  function aiffOf(compression: string, bits: number, sound: Uint8Array, promised = sound.length): Uint8Array {
    const rate = [0x40, 0x0b, 0xfa, 0, 0, 0, 0, 0, 0, 0];
    const comm = [0, 1, ...u32(0), 0, bits, ...rate, ...Buffer.from(compression), ...(compression ? [0, 0] : [])];
    const chunk = (type: string, size: number, ...parts: (Uint8Array | number[])[]) =>
      concat(Buffer.from(type), Uint8Array.from(u32(size)), ...parts.map((part) => Uint8Array.from(part)));
    return concat(
      chunk('FORM', 0, Buffer.from(compression ? 'AIFC' : 'AIFF')),
      chunk('COMM', comm.length, comm),
      chunk('SSND', promised + 8, new Uint8Array(8), sound),
    );
  }

  /** Samples of the clip that all others are made of. */
  const source = async () => (await decode(clip('mono-8k.flac'))).channels[0] ?? [];

  it('U1 AIFF gives the samples of the FLAC it was made of', async () => {
    // The package of FLAC divides by 32,767.
    const integers = Int16Array.from(await source(), (sample) => Math.round(sample * 0x7fff));
    const wanted = [...Float32Array.from(integers, (sample) => sample / 0x8000)];
    const little = new Uint8Array(integers.buffer);
    const big = new Uint8Array(Buffer.from(little).swap16());
    for (const file of [aiffOf('', 16, big), aiffOf('sowt', 16, little), aiffOf('twos', 16, big)]) {
      for (const size of [61, 65_536]) {
        const read = await decode(file, size);
        expect([read.refusal, read.rate, read.channels.length]).toEqual([undefined, 8_000, 1]);
        expect(read.channels[0]?.every((sample, i) => sample === wanted[i])).toBe(true);
        expect(read.channels[0]?.length).toBe(wanted.length);
      }
    }
    expect((await decode(aiffOf('', 16, big, big.length + 2))).refusal?.reason).toBe('audio_truncated');
    const refused = (await decode(aiffOf('ima4', 16, big))).refusal;
    expect(refused && publicText(refused)).toContain("The file holds AIFF 'ima4' of 16 bits and 1 channels.");
  });

  it('U1 AIFF of a negative rate and of floats that are no numbers is refused', async () => {
    const negative = aiffOf('', 16, new Uint8Array(64));
    negative[28] = 0xc0;
    const notNumbers = aiffOf('fl32', 32, Uint8Array.of(0, 0, 0, 0, 0x7f, 0xc0, 0, 0));
    const rules = await Promise.all([negative, notNumbers].map(async (file) => (await decode(file)).refusal?.params));
    expect(rules).toEqual([{ rule: 'its header says -8000 Hz' }, { rule: 'a sample is not a number' }]);
  });

  it.each(['adpcm-ms.wav', 'adpcm-ima.wav'])('U1 %s is decoded like the FLAC it was made of', async (name) => {
    const wanted = await source();
    const { channels, refusal, rate } = await decode(clip(name));
    expect([refusal, rate, channels.length]).toEqual([undefined, 8_000, 1]);
    const noise = wanted.reduce((sum, sample, i) => sum + (sample - (channels[0]?.[i] ?? 0)) ** 2, 0);
    const sound = wanted.reduce((sum, sample) => sum + sample ** 2, 0);
    expect(10 * Math.log10(sound / noise)).toBeGreaterThan(15);
    expect((await decode(clip(name), 61)).channels).toEqual(channels);
    expect((await decode(clip(name).slice(0, -20))).refusal?.reason).toBe('audio_truncated');
  });

  it.each(names)('U1 damage in %s never throws and never gives more sound', async (name) => {
    const good = clip(name);
    const seeds = runs(12, 1_000);
    for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
      const next = randomOf(seed);
      const bytes = good.slice(0, next() < 0.3 ? Math.floor(next() * good.length) : good.length);
      for (let i = 1 + Math.floor(next() * 8); i > 0; i--) {
        // Half of the damage hits the index.
        const at = Math.floor(next() * (next() < 0.5 ? 900 : bytes.length));
        if (at < bytes.length) bytes[at] = next() < 0.3 ? 255 : Math.floor(next() * 256);
      }
      expect((await decode(bytes)).seconds, `seed ${seed}`).toBeLessThan(60);
    }
  });
});
