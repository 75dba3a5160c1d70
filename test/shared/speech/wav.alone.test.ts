import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createWavReader } from '../../../shared/speech/wav.ts';

type Chunk = readonly [name: string, content: Uint8Array | number[], size?: number];

const u16 = (value: number) => [value & 255, (value >> 8) & 255];
const u32 = (value: number) => [...u16(value & 0xffff), ...u16(value >>> 16)];
const ascii = (text: string) => [...new TextEncoder().encode(text)];

interface Shape {
  readonly tag?: number;
  readonly channels?: number;
  readonly rate?: number;
  readonly bits?: number;
  readonly frame?: number;
}

function format({ tag = 1, channels = 1, rate = 16_000, bits = 16, frame = (channels * bits) / 8 }: Shape = {}): Chunk {
  return ['fmt ', [...u16(tag), ...u16(channels), ...u32(rate), ...u32(rate * frame), ...u16(frame), ...u16(bits)]];
}

/** WAVEFORMATEXTENSIBLE with the given tag in its sub-format. */
function extensible(tag: number, bits: number): Chunk {
  const guid = [...u16(tag), 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71];
  const base = format({ tag: 0xfffe, bits })[1] as number[];
  return ['fmt ', [...base, ...u16(22), ...u16(bits), ...u32(4), ...guid]];
}

function file(chunks: readonly Chunk[], signature = 'RIFF'): Uint8Array {
  const body = chunks.flatMap(([name, content, size = content.length]) => [
    ...ascii(name),
    ...u32(size),
    ...content,
    ...(content.length % 2 === 1 ? [0] : []),
  ]);
  return Uint8Array.from([...ascii(signature), ...u32(body.length + 4), ...ascii('WAVE'), ...body]);
}

interface Read {
  readonly channels: number[][];
  readonly rate: number;
  readonly refusal?: string;
}

function read(bytes: Uint8Array, cuts: readonly number[] = []): Read {
  const reader = createWavReader();
  const channels: number[][] = [];
  let rate = 0;
  const places = [0, ...[...cuts].sort((a, b) => a - b), bytes.length];
  for (let i = 1; i < places.length; i++) {
    const pushed = reader.push(bytes.subarray(places[i - 1], places[i]));
    if (!pushed.ok) return { channels, rate, refusal: pushed.refusal.reason };
    rate = pushed.value?.rate ?? rate;
    pushed.value?.channels.forEach((samples, c) => {
      channels[c] = [...(channels[c] ?? []), ...samples];
    });
  }
  const end = reader.finish();
  return { channels, rate, ...(!end.ok && { refusal: end.refusal.reason }) };
}

const samples16 = [...u16(0x4000), ...u16(0xc000), ...u16(0x7fff)];
const data: Chunk = ['data', samples16];

describe('sample formats', () => {
  const half = (bits: number) => ({ 16: u16(0x4000), 24: [0, 0, 0x40], 32: u32(0x40000000) })[bits] ?? [];
  it.each([16, 24, 32])('%i-bit integers', (bits) => {
    const { channels, rate } = read(file([format({ bits, rate: 8_000 }), ['data', half(bits)]]));
    expect([channels, rate]).toEqual([[[0.5]], 8_000]);
  });
  it('negative 24-bit integers', () => {
    expect(read(file([format({ bits: 24 }), ['data', [0, 0, 0xc0]]])).channels).toEqual([[-0.5]]);
  });
  it('32-bit float, clipped', () => {
    const floats = new Uint8Array(Float32Array.of(0.25, 7, Number.NEGATIVE_INFINITY).buffer);
    expect(read(file([format({ tag: 3, bits: 32 }), ['data', floats]])).channels).toEqual([[0.25, 1, -1]]);
  });
  it('U1 64-bit float', () => {
    const floats = new Uint8Array(Float64Array.of(0.25, -9).buffer);
    expect(read(file([format({ tag: 3, bits: 64 }), ['data', floats]])).channels).toEqual([[0.25, -1]]);
  });
  it.each([
    ['U1 8-bit', 1, [0, 0x80, 0xc0], [-1, 0, 0.5]],
    ['U1 A-law', 6, [0xd5, 0x55, 0xaa], [8 / 0x8000, -8 / 0x8000, 32_256 / 0x8000]],
    ['U1 µ-law', 7, [0xff, 0x00, 0x80], [0, -32_124 / 0x8000, 32_124 / 0x8000]],
  ])('%s', (_, tag, bytes, samples) => {
    expect(read(file([format({ tag, bits: 8 }), ['data', bytes]])).channels).toEqual([samples]);
  });
  it('U1 eight channels at 192 kHz', () => {
    const both = read(file([format({ channels: 8, rate: 192_000 }), ['data', Array<number>(16).fill(0x40)]]));
    expect([both.rate, both.channels]).toEqual([192_000, Array<number[]>(8).fill([0x4040 / 0x8000])]);
  });
  it('WAVE_FORMAT_EXTENSIBLE', () => {
    expect(read(file([extensible(1, 16), data])).channels).toEqual([[0.5, -0.5, 0x7fff / 0x8000]]);
    expect(read(file([extensible(3, 32), ['data', new Uint8Array(Float32Array.of(0.5).buffer)]])).channels).toEqual([
      [0.5],
    ]);
  });
  it('stereo', () => {
    const both = read(file([format({ channels: 2 }), ['data', [...u16(0x4000), ...u16(0xc000)]]]));
    expect(both.channels).toEqual([[0.5], [-0.5]]);
  });
});

describe('containers', () => {
  const wanted = [[0.5, -0.5, 0x7fff / 0x8000]];
  it.each<[string, Uint8Array]>([
    ['chunks before the data, one of odd length', file([['LIST', [1, 2, 3]], format(), ['fact', u32(3)], data])],
    ['chunks behind the data', file([format(), data, ['LIST', [1, 2, 3, 4]]])],
    ['a stream: size 0', file([format(), ['data', samples16, 0]])],
    ['a stream of espeak-ng: size 0x7FFFF000', file([format(), ['data', samples16, 0x7ffff000]])],
    ['a stream: size 0xFFFFFFFF', file([format(), ['data', samples16, 0xffffffff]])],
    ['RF64', file([['ds64', new Uint8Array(28)], format(), ['data', samples16, 0xffffffff]], 'RF64')],
    ['a last frame that is not whole', file([format(), ['data', [...samples16, 1]]])],
  ])('%s', (_, bytes) => {
    expect(read(bytes)).toEqual({ channels: wanted, rate: 16_000 });
  });

  it('at any chunk boundary', () => {
    const bytes = file([
      ['LIST', [1, 2, 3]],
      format({ channels: 2 }),
      ['data', [...samples16, ...samples16]],
      ['id3 ', [1]],
    ]);
    const whole = read(bytes);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: bytes.length })), (cuts) => {
        expect(read(bytes, cuts)).toEqual(whole);
      }),
    );
  });

  it('holds no more than a header field or a frame', () => {
    const reader = createWavReader();
    reader.push(file([format()]).subarray(0));
    // A chunk to skip of 100 MB passes through without being kept.
    reader.push(Uint8Array.from([...ascii('junk'), ...u32(100 * 1024 * 1024)]));
    const megabyte = new Uint8Array(1024 * 1024);
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 100; i++) reader.push(megabyte);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8 * 1024 * 1024);
    expect(reader.push(file([data]).subarray(12)).ok).toBe(true);
  });
});

describe('refusals', () => {
  it.each<[string, string, Uint8Array]>([
    ['audio_truncated', 'ends inside the signature', file([]).subarray(0, 8)],
    ['audio_truncated', 'ends inside the format', file([format()]).subarray(0, 30)],
    ['audio_truncated', 'ends inside the data', file([format(), ['data', samples16, 100]])],
    ['audio_empty', 'C7 ends behind the header', file([format(), ['data', new Uint8Array(0), 100]])],
    ['audio_truncated', 'ends inside a chunk to skip', file([['LIST', [1], 100]])],
    ['audio_invalid', 'has no data', file([format()])],
    ['audio_invalid', 'has data before the format', file([data, format()])],
    ['audio_invalid', '0 Hz', file([format({ rate: 0 }), data])],
    ['audio_invalid', '0 channels', file([format({ channels: 0, frame: 2 }), data])],
    ['audio_invalid', 'frame size that does not fit', file([format({ frame: 3 }), data])],
    ['audio_invalid', 'format of 10 bytes', file([['fmt ', new Uint8Array(10)], data])],
    ['audio_invalid', 'format of a megabyte', file([['fmt ', new Uint8Array(4), 1_000_000], data])],
    ['audio_invalid', 'extensible format that is cut', file([format({ tag: 0xfffe }), data])],
    ['audio_unsupported', '12-bit', file([format({ bits: 12, frame: 2 }), data])],
    ['audio_unsupported', 'GSM', file([format({ tag: 0x31, bits: 0 }), data])],
    [
      'audio_unsupported',
      'ADPCM of three channels',
      file([format({ tag: 2, bits: 4, channels: 3, frame: 256 }), data]),
    ],
    ['audio_unsupported', 'ADPCM of empty blocks', file([format({ tag: 17, bits: 4, frame: 4 }), data])],
    ['audio_unsupported', 'nine channels', file([format({ channels: 9 }), data])],
    ['audio_unsupported', '384 kHz', file([format({ rate: 384_000 }), data])],
    ['audio_unsupported', '4 kHz', file([format({ rate: 4_000 }), data])],
  ])('%s: %s', (reason, _, bytes) => {
    expect(read(bytes).refusal).toBe(reason);
  });

  it('never throws on damage', () => {
    const good = file([['LIST', [1, 2, 3]], format(), data]);
    fc.assert(
      fc.property(fc.integer({ min: 0, max: good.length - 1 }), fc.nat(255), fc.nat(good.length), (at, value, cut) => {
        const bytes = good.slice(0, cut);
        if (at < cut) bytes[at] = value;
        read(bytes);
      }),
    );
  });
});
