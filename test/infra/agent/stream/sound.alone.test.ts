import { readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { createCutter, type Unit } from '../../../../infra/pool/agent/asr/vad/cut.ts';
import { createLiveCutter } from '../../../../infra/pool/agent/asr/vad/cut-live.ts';
import { createVoiceDetector, MEMORY_BYTES, UNIT_SAMPLES } from '../../../../infra/pool/agent/asr/vad/detect.ts';
import { enableAac } from '../../../../infra/pool/agent/audio/aac.ts';
import { decodeSound } from '../../../../infra/pool/agent/audio/decode.ts';
import { createResampler, firstInput } from '../../../../infra/pool/agent/audio/resample.ts';
import { createPageReader } from '../../../../infra/pool/agent/stream/ogg-pages.ts';
import { openSource } from '../../../../infra/pool/agent/stream/open-source.ts';
import type { Origin, ResumePoint } from '../../../../infra/pool/agent/stream/source.ts';
import { publicText } from '../../../../shared/refusal.ts';
import type { StreamFormat } from '../../../../shared/stream/format.ts';
import { oggPackets } from '../../../ogg-packets.ts';
import { liveWebm } from '../../../webm.ts';
import { joinSamples, silence, silentPage, voice, withCrc } from '../fixtures.ts';

vi.spyOn(console, 'error').mockImplementation(() => {});

const start: Origin = { position: 0, frame: 0 };
const pcm = (encoding: StreamFormat['encoding'], channels: 1 | 2 = 1): StreamFormat => ({
  encoding,
  rate: 16_000,
  channels,
});
const opus: StreamFormat = { encoding: 'opus', rate: 48_000, channels: 1 };
const ogg: StreamFormat = { encoding: 'ogg-opus', rate: 48_000, channels: 1 };
const webm: StreamFormat = { encoding: 'webm', rate: 48_000, channels: 1 };
const aac: StreamFormat = { encoding: 'aac', rate: 44_100, channels: 1 };

async function open(format: StreamFormat, origin = start, skip = 0) {
  const source = await openSource(format, origin, skip);
  if (!source.ok) throw new Error(source.refusal.reason);
  return source.value;
}

/** Everything a source makes of chunks that follow each other from `origin` on. */
async function decode(format: StreamFormat, chunks: readonly Uint8Array[], origin = start, skip = 0) {
  const source = await open(format, origin, skip);
  const parts: Float32Array[] = [];
  let position = origin.position;
  for (const chunk of chunks) {
    const sound = source.push(position, chunk);
    if (!sound.ok) throw new Error(sound.refusal.reason);
    const { value } = sound;
    parts.push(value instanceof Int16Array ? Float32Array.from(value, (sample) => sample / 32_768) : value);
    position += chunk.length;
  }
  source.free();
  return joinSamples(...parts);
}

/** Pieces of any size. */
function pieces(bytes: Uint8Array, size: number): Uint8Array[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size));
}

describe('silence that unpacks for ever', () => {
  it('is refused undecoded when a message holds minutes of it', async () => {
    const source = await open(ogg);
    const pages = Array.from({ length: 120 }, (_, i) => silentPage(1, 255, i + 2));
    const bomb = new Uint8Array(Buffer.concat(pages));
    expect(bomb.length).toBeLessThan(2 ** 16);
    const answer = source.push(0, bomb);
    expect(answer).toMatchObject({ ok: false, refusal: { reason: 'audio_invalid' } });
    source.free();
  });

  it('is taken in messages that unpack to less', async () => {
    const source = await open(ogg);
    const page = silentPage(1, 255);
    const answer = source.push(0, page);
    if (!answer.ok) throw new Error(answer.refusal.reason);
    expect(answer.value.length).toBeGreaterThan(16_000);
    source.free();
  });
});

describe('PCM of a stream', () => {
  it('16-bit integers and 32-bit floats, little-endian', async () => {
    const samples = Float32Array.of(0, 0.5, -0.5, 32_767 / 32_768, -1);
    const ints = new Uint8Array(Int16Array.from(samples, (sample) => sample * 32_768).buffer);
    expect(await decode(pcm('linear16'), [ints])).toEqual(samples);
    expect(await decode(pcm('linear32'), [new Uint8Array(samples.buffer)])).toEqual(samples);
  });

  it('NaN samples become silence, and out-of-range ones full scale', async () => {
    const wild = new Uint8Array(
      Float32Array.of(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 7).buffer,
    );
    expect(await decode(pcm('linear32'), [wild])).toEqual(Float32Array.of(0, 1, -1, 1));
  });

  it('µ-law and A-law as in ITU-T G.711: silence, the loudest, and every code once', async () => {
    const codes = Uint8Array.from({ length: 256 }, (_, code) => code);
    const [mu, a] = [await decode(pcm('mulaw'), [codes]), await decode(pcm('alaw'), [codes])];
    expect([mu[0xff], mu[0x7f], mu[0x00], mu[0x80]].map((sample) => (sample ?? 9) * 32_768)).toEqual([
      0, -0, -32_124, 32_124,
    ]);
    expect([a[0xd5], a[0x55], a[0x2a], a[0xaa]].map((sample) => (sample ?? 9) * 32_768)).toEqual([
      8, -8, -32_256, 32_256,
    ]);
    // Tables 1a and 2a: of each sign 128 values that grow with the code.
    for (const table of [mu, a]) {
      expect(new Set(table.map(Math.abs)).size).toBe(128);
      expect(table.reduce((sum, sample) => sum + sample, 0)).toBeCloseTo(0, 6);
    }
  });

  it('two channels are mixed', async () => {
    const bytes = new Uint8Array(Int16Array.of(8_192, 16_384, -8_192, 8_192).buffer);
    expect(await decode(pcm('linear16', 2), [bytes])).toEqual(Float32Array.of(0.375, 0));
  });

  it.each(['linear16', 'linear32'] as const)('%s cut anywhere is the same', async (encoding) => {
    const bytes = Uint8Array.from({ length: 4_000 }, (_, i) => (i * 37) % 120);
    const whole = await decode(pcm(encoding, 2), [bytes]);
    for (const size of [1, 3, 7, 1_001]) expect(await decode(pcm(encoding, 2), pieces(bytes, size))).toEqual(whole);
  });

  it('knows where each frame began', async () => {
    const source = await open(pcm('linear16', 2), { position: 100, frame: 1_000 });
    source.push(100, new Uint8Array(43));
    expect(source.locate(1_005)).toEqual({ position: 120, skip: 0 });
  });
});

const file = new Uint8Array(readFileSync(path.join(import.meta.dirname, '../../../clips/balance.opus')));
const [opusHead = file, , ...packets] = oggPackets(file);
const webmFile = liveWebm('A_OPUS', opusHead, packets);
const aacFile = new Uint8Array(readFileSync(path.join(import.meta.dirname, '../clips/mono-44k.aac')));

/** The same recording as a file. */
async function decodeFile(recording: Uint8Array = file): Promise<Float32Array> {
  const parts: Float32Array[] = [];
  async function* bytes() {
    yield recording;
  }
  for await (const block of decodeSound(bytes())) if (block.ok) parts.push(block.value.channels[0] as Float32Array);
  return joinSamples(...parts);
}

enableAac();

describe('containers of a stream', () => {
  it.each([
    ['webm', webm, webmFile],
    ['aac', aac, aacFile],
  ] as const)('U1 %s cut anywhere decodes as the recording does', async (_name, format, bytes) => {
    const recorded = await decodeFile(bytes);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1, maxLength: 40 }), async (sizes) => {
        const chunks: Uint8Array[] = [];
        for (let at = 0, i = 0; at < bytes.length; at += chunks.at(-1)?.length ?? 0, i++)
          chunks.push(bytes.subarray(at, at + (sizes[i % sizes.length] ?? 1)));
        const live = await decode(format, chunks);
        expect(live.every((sample, i) => sample === recorded[i]) && live.length === recorded.length).toBe(true);
      }),
      { numRuns: 8 },
    );
  });

  it.each([
    ['Vorbis in WebM', webm, liveWebm('A_VORBIS', opusHead, packets)],
    ['AAC in WebM', webm, liveWebm('A_AAC', Uint8Array.of(0x12, 0x08), packets)],
    ["'A_FLAC' in WebM", webm, liveWebm('A_FLAC', opusHead, packets)],
    ['AAC Main in ADTS; record AAC-LC or Opus', aac, aacFile.map((byte, i) => (i === 2 ? byte & 0x3f : byte))],
  ] as const)('U1 a refusal names %s', async (found, format, bytes) => {
    const answer = (await open(format)).push(0, bytes);
    expect(answer.ok || publicText(answer.refusal)).toContain(`The stream holds ${found}.`);
  });

  it.each([
    [
      'six channels',
      webm,
      liveWebm(
        'A_OPUS',
        opusHead.map((byte, i) => (i === 9 ? 6 : byte)),
        packets,
      ),
    ],
    ['no element', webm, new Uint8Array(80).fill(0)],
    ['packets that are not Opus', webm, liveWebm('A_OPUS', opusHead, [new Uint8Array(9).fill(255)])],
    ['another rate than announced', { ...aac, rate: 48_000 }, aacFile],
    ['no frame', aac, new Uint8Array(80).fill(1)],
  ] as const)('U1 %s is refused as damaged', async (_name, format, bytes) => {
    expect((await open(format)).push(0, bytes)).toMatchObject({ refusal: { reason: 'audio_invalid' } });
  });

  /** An element of `id` that claims `size` bytes. */
  const headOf = (id: number[], size: number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(BigInt(size));
    bytes[0] = 1;
    return joinBytes([Uint8Array.from(id), new Uint8Array(bytes)]);
  };
  const border = Buffer.from(webmFile).lastIndexOf(Uint8Array.of(0x1f, 0x43, 0xb6, 0x75));
  const withInside = (bytes: Uint8Array) => joinBytes([webmFile.subarray(0, border), bytes, webmFile.subarray(border)]);

  /** Refusal of a live stream that ends behind `bytes`. */
  async function refusalOf(bytes: Uint8Array) {
    const source = await open(webm);
    const pushed = source.push(0, bytes);
    const done = pushed.ok ? source.end?.() : pushed;
    source.free();
    return done?.ok === false ? publicText(done.refusal) : undefined;
  }

  const cut = 'ends before its header says it should';
  it.each([
    ['a Void of 5e11 bytes', withInside(headOf([0xec], 5e11)), 'element 0xec claims 500000000000 bytes'],
    ['an unknown element of 4 GB', withInside(headOf([0x42, 0x42], 4e9)), 'element 0x4242 claims 4000000000 bytes'],
    ['a Void beyond the data', withInside(headOf([0xec], webmFile.length - border + 60_000)), cut],
    ['noise', withInside(new Uint8Array(30_000).map((_, i) => (i * 167 + (i >> 3)) & 255)), ''],
    ['half a block', webmFile.subarray(0, -5), cut],
    [
      'an undeclared track',
      joinBytes([webmFile, headOf([0xa3], 6), Uint8Array.of(0x82, 0, 0, 0x80, 8, 8)]),
      'track 2,',
    ],
  ] as const)('U1 live WebM with %s is refused', async (_name, bytes, text) => {
    expect(await refusalOf(bytes)).toContain(text);
  });

  it('U1 live WebM ends between any two elements', async () => {
    const sized = webmFile.slice();
    const segment = Buffer.from(sized).indexOf(Uint8Array.of(0x18, 0x53, 0x80, 0x67));
    sized.set([1, 0, 0, 1, 0, 0, 0, 0], segment + 4);
    for (const bytes of [webmFile, webmFile.subarray(0, border), sized, new Uint8Array(0)])
      expect(await refusalOf(bytes)).toBeUndefined();
  });

  it('R1 WebM without the number of its track never resumes in silence', async () => {
    const made = await openSource(webm, { position: 900, frame: 0 }, 0);
    expect(made).toMatchObject({ ok: false, refusal: { reason: 'seal_broken' } });
  });
});

describe('Opus of a stream: a phone', () => {
  it('decodes the same by packets, by Ogg pages cut anywhere, and as file', async () => {
    const whole = await decodeFile();
    const live = await decode(ogg, pieces(file, 300));
    // The end of a file may be trimmed by its last page; who is live does not know yet.
    expect(live.subarray(0, whole.length)).toEqual(whole);
    expect(await decode(ogg, pieces(file, 7))).toEqual(live);
    const raw = await decode(opus, packets);
    expect(raw.subarray(raw.length - live.length)).toEqual(live);
    expect(raw.length - live.length).toBe(104);
  });

  it.each([
    ['opus', opus, packets],
    ['ogg-opus', ogg, pieces(file, 200)],
    ['webm', webm, pieces(webmFile, 211)],
    ['aac', aac, pieces(aacFile, 61)],
  ] as const)('%s resumes before the wanted position and then sounds the same', async (_name, format, chunks) => {
    const whole = await decode(format, chunks);
    const source = await open(format);
    let position = 0;
    let heard = 0;
    const moves: (ResumePoint & { wanted: number })[] = [];
    for (const [i, chunk] of chunks.entries()) {
      const sound = source.push(position, chunk);
      position += chunk.length;
      heard += sound.ok ? sound.value.length : 0;
      if (i % 20 === 19 && heard > 10_000) moves.push({ wanted: heard - 2_000, ...source.locate(heard - 2_000) });
    }
    expect(moves.length).toBeGreaterThanOrEqual(2);
    const bytes = joinBytes(chunks);
    for (const { wanted, position: from, skip, track } of moves) {
      const rest = format === opus ? chunks.slice(startsOf(chunks).indexOf(from)) : [bytes.subarray(from)];
      const again = await decode(format, rest, { position: from, frame: wanted - skip, track }, skip);
      expect(again.length).toBe(whole.length - wanted);
      const error = Math.max(...again.map((sample, i) => Math.abs(sample - (whole[wanted + i] ?? 0))));
      expect(error).toBeLessThan(0.02);
    }
  });

  it('refuses what is no packet, no page, or has too many channels', async () => {
    const packet = (await open(opus)).push(0, Uint8Array.of(0xff, 0xff, 0xff, 0xff));
    expect(packet).toMatchObject({ ok: false, refusal: { reason: 'audio_invalid' } });
    const page = (await open(ogg)).push(0, new Uint8Array(60).fill(1));
    expect(page).toMatchObject({ ok: false, refusal: { reason: 'audio_invalid' } });
    const wide = file.slice(0, 400);
    wide[28 + 9] = 6;
    expect((await open(ogg)).push(0, wide)).toMatchObject({ ok: false, refusal: { reason: 'audio_invalid' } });
  });

  it('refuses pages that are damaged, of another version, or begin without an Opus header', async () => {
    const push = async (bytes: Uint8Array) => (await open(ogg)).push(0, bytes);
    const invalid = { ok: false, refusal: { reason: 'audio_invalid' } };
    const changed = (at: number, byte: number) => {
      const page = silentPage(1, 3);
      page[at] = byte;
      return page;
    };
    expect((await push(silentPage(1, 3))).ok).toBe(true);
    expect(await push(Buffer.from(`OggS${'x'.repeat(5_000)}`))).toMatchObject(invalid);
    expect(await push(changed(30, 0x09))).toMatchObject(invalid);
    expect(await push(withCrc(changed(4, 1)))).toMatchObject(invalid);
    // The first page by its number, by its flag, and by both.
    expect(await push(withCrc(changed(18, 0)))).toMatchObject(invalid);
    expect(await push(withCrc(changed(5, 2)))).toMatchObject(invalid);
    const first = changed(18, 0);
    first[5] = 2;
    expect(await push(withCrc(first))).toMatchObject(invalid);
  });

  it('refuses a missing or repeated page after any first one', async () => {
    const push = async (...numbers: readonly number[]) =>
      (await open(ogg)).push(0, Buffer.concat(numbers.map((number) => silentPage(1, 3, number))));
    expect((await push(7, 8, 9)).ok).toBe(true);
    expect(await push(7, 9)).toMatchObject({ refusal: { params: { rule: 'page 8 is missing' } } });
    expect(await push(7, 8, 8)).toMatchObject({ refusal: { params: { rule: 'page 8 is repeated or out of order' } } });
  });

  it('takes an empty packet for silence that was not sent', async () => {
    expect(await decode(opus, [new Uint8Array(0), ...packets.slice(0, 3)])).toEqual(
      await decode(opus, packets.slice(0, 3)),
    );
  });

  it('takes pages of anything without an end of its own', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 6 }),
        fc.nat(400),
        fc.nat(255),
        (chunks, at, byte) => {
          const damaged = file.slice(0, 1_200);
          damaged[at] = byte;
          for (const stream of [chunks, [damaged, ...chunks]]) {
            const reader = createPageReader(0);
            for (const chunk of stream) for (const item of reader.push(chunk)) if (item.type === 'broken') return;
          }
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

const joinBytes = (chunks: readonly Uint8Array[]) => new Uint8Array(Buffer.concat(chunks));
function startsOf(chunks: readonly Uint8Array[]): number[] {
  let at = 0;
  return chunks.map(({ length }) => {
    at += length;
    return at - length;
  });
}

const sound = joinSamples(silence(0.4), voice(1.1), silence(0.7), voice(0.3), silence(1.5), voice(0.9), silence(0.5));
function unitsOf(samples: Float32Array): Float32Array[] {
  return Array.from({ length: Math.floor(samples.length / UNIT_SAMPLES) }, (_, i) =>
    samples.slice(i * UNIT_SAMPLES, (i + 1) * UNIT_SAMPLES),
  );
}

describe('detectors resume elsewhere without a difference', () => {
  it('the voice detector (A4): same memory, same decisions, at any unit', async () => {
    const units = unitsOf(sound);
    const first = await createVoiceDetector();
    const memories: Uint8Array[] = [];
    const decisions = units.map((unit) => {
      memories.push(first.save());
      return first.hasVoice(unit);
    });
    expect(new Set(decisions)).toEqual(new Set([true, false]));
    for (const [at, memory] of memories.entries()) {
      expect(memory.length).toBe(MEMORY_BYTES);
      const second = await createVoiceDetector(memory);
      expect(units.slice(at).map((unit) => second.hasVoice(unit))).toEqual(decisions.slice(at));
      second.free();
    }
    // And not because there is nothing to remember.
    expect(memories.at(-1)).not.toEqual(memories[0]);
    first.free();
  });

  it('the voice detector starts over on memory that libfvad rejects', async () => {
    const memory = new Uint8Array(MEMORY_BYTES);
    // Found by the next test: a noise model whose likelihood leaves its range.
    const rejected = { 237: 22, 239: 22, 241: 45, 243: 34, 251: 1, 255: 22, 280: 254, 281: 127 };
    for (const [at, value] of Object.entries(rejected)) memory[Number(at)] = value;
    const [broken, fresh] = [await createVoiceDetector(memory), await createVoiceDetector()];
    const tone = Int16Array.from({ length: UNIT_SAMPLES }, (_, i) => Math.round(8_000 * Math.sin(i / 5)));
    expect(broken.hasVoice(tone)).toBe(true);
    expect(broken.save()).toEqual(fresh.save());
    for (const detector of [broken, fresh]) detector.free();
  });

  it('the voice detector takes any memory', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: MEMORY_BYTES, maxLength: MEMORY_BYTES }), async (memory) => {
        const detector = await createVoiceDetector(memory);
        for (const unit of unitsOf(sound).slice(0, 20)) expect(typeof detector.hasVoice(unit)).toBe('boolean');
        detector.free();
      }),
      { numRuns: 500 },
    );
    // Its neighbours in the same memory are well.
    const detector = await createVoiceDetector();
    expect(
      unitsOf(sound)
        .map((unit) => detector.hasVoice(unit))
        .filter(Boolean).length,
    ).toBeGreaterThan(20);
    detector.free();
  });

  it('the resampler: from any sample on the same samples', () => {
    for (const rate of [8_000, 11_025, 22_050, 44_100, 48_000]) {
      const input = Float32Array.from({ length: 20_000 }, (_, i) => Math.sin(i / 7) * Math.cos(i / 97));
      const first = createResampler(rate, 16_000);
      const whole = joinSamples(first.push(input), first.finish());
      for (const output of [1, 50, 799, 800, 3_200]) {
        const second = createResampler(rate, 16_000, output);
        const rest = joinSamples(second.push(input.subarray(firstInput(rate, 16_000, output))), second.finish());
        expect(rest).toEqual(whole.subarray(output));
      }
    }
  });
});

describe('the live cutter (A4)', () => {
  const drawing = fc.array(
    fc.tuple(fc.constantFrom('#', '.'), fc.integer({ min: 1, max: 25 })).map(([mark, count]) => mark.repeat(count)),
    { maxLength: 14 },
  );

  it('cuts as the one for recordings does', () => {
    fc.assert(
      fc.property(drawing, (parts) => {
        const units: Unit[] = [...parts.join('')].map((mark) => ({
          samples: new Float32Array(UNIT_SAMPLES),
          voiced: mark === '#',
        }));
        const [recorded, live] = [createCutter(), createLiveCutter(600)];
        const expected: number[] = [];
        const found: number[] = [];
        for (const unit of units) {
          const cut = recorded.push(unit);
          if (cut) expected.push(cut.samples.length / UNIT_SAMPLES);
          const own = live.push(unit)?.own;
          if (own !== undefined) found.push(own);
        }
        expect(found).toEqual(expected);
      }),
    );
  });

  it('never takes back a unit that was sure', () => {
    fc.assert(
      fc.property(drawing, fc.constantFrom<number | false>(50, 300, 600, 2_000, false), (parts, endpointingMs) => {
        const live = createLiveCutter(endpointingMs);
        let sure = 0;
        for (const mark of parts.join('')) {
          const cut = live.push({ samples: new Float32Array(UNIT_SAMPLES), voiced: mark === '#' });
          if (cut) {
            expect(cut.units.length).toBeGreaterThanOrEqual(sure);
            sure = live.sure();
          } else {
            expect(live.sure()).toBeGreaterThanOrEqual(sure);
            sure = live.sure();
          }
        }
      }),
    );
  });

  it('ends after exactly the requested silence', () => {
    for (const [endpointingMs, units] of [
      [10, 1],
      [50, 1],
      [51, 2],
      [300, 6],
      [600, 12],
      [2_000, 40],
    ] as const) {
      const live = createLiveCutter(endpointingMs);
      const unit = (voiced: boolean) => live.push({ samples: new Float32Array(UNIT_SAMPLES), voiced });
      for (let i = 0; i < 5; i++) expect(unit(true)).toBeUndefined();
      for (let i = 1; i < units; i++) expect(unit(false)).toBeUndefined();
      expect(unit(false)).toMatchObject({ ending: 'endpoint' });
    }
  });

  it('holds back at most half a second during a long pause', () => {
    for (const endpointingMs of [600, 2_000, 10_000, false] as const) {
      const live = createLiveCutter(endpointingMs);
      for (let i = 0; i < 150; i++) {
        live.push({ samples: new Float32Array(UNIT_SAMPLES), voiced: i < 5 });
        if (live.speaking()) expect(live.held().length - live.sure()).toBeLessThanOrEqual(9);
      }
    }
  });
});
