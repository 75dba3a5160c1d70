import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Container, WAV_HEADER_CHUNKS_MAX } from '../../../edge/protocol/deepgram-container.ts';
import { publicText } from '../../../shared/refusal.ts';

/** The header of a WAV file of 16 kHz mono, with so many empty chunks before its sound. */
function wav(empty: number): Uint8Array {
  const header = Buffer.alloc(36);
  header.write('RIFF', 0);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(16_000, 24);
  header.writeUInt16LE(16, 34);
  const chunks = Array.from({ length: empty }, () => Buffer.from('junk\0\0\0\0'));
  return new Uint8Array(Buffer.concat([header, ...chunks, Buffer.from('data\0\0\0\0')]));
}

// The format is a chunk, too.
const most = WAV_HEADER_CHUNKS_MAX - 1;

describe('C10 a WAV file of many chunks', () => {
  it('is parsed once when it comes byte by byte, and copied a few times', () => {
    const file = wav(most);
    const looks = vi.spyOn(DataView.prototype, 'getUint32');
    const copies = vi.spyOn(Object.getPrototypeOf(Uint8Array.prototype) as Uint8Array, 'set');
    onTestFinished(() => void vi.restoreAllMocks());
    const container = new Container();
    const taken = [...file].map((byte) => container.push(Uint8Array.of(byte)));
    expect(taken.at(-1)).toMatchObject({ ok: true, value: { format: { encoding: 'linear16', rate: 16_000 } } });
    expect(looks.mock.calls.length).toBeLessThan(3 * file.length);
    expect(copies.mock.calls.reduce((sum, [bytes]) => sum + bytes.length, 0)).toBeLessThan(4 * file.length);
  });

  it('is refused when there are too many of them before its sound', () => {
    expect(new Container().push(wav(most + 1))).toMatchObject({ ok: false, refusal: { reason: 'audio_invalid' } });
  });
});

it.each([
  ['WebM', [0x1a, 0x45, 0xdf, 0xa3, ...Array<number>(80).fill(5)], { encoding: 'webm', rate: 48_000, channels: 1 }],
  ['ADTS', [0xff, 0xf1, 0x50, 0x80, 2, 0x1f, 0xfc, 1], { encoding: 'aac', rate: 44_100, channels: 1 }],
] as const)('U1 C10 %s is handed on as it is, byte by byte', (_, bytes, format) => {
  const container = new Container();
  const taken = bytes.map((byte) => container.push(Uint8Array.of(byte)));
  const given = taken.flatMap((one) => (one.ok && one.value ? [one.value] : []));
  expect(given[0]?.format).toEqual(format);
  expect(given.flatMap(({ audio }) => [...audio])).toEqual(bytes);
});

it.each([
  ['MP4', Buffer.from('\0\0\0\x18ftypisom')],
  ['FLAC', Buffer.from('fLaC')],
  ['AAC of 96000 Hz', Uint8Array.of(0xff, 0xf1, 0x40, 0x80)],
])('U1 a refusal names %s', (found, bytes) => {
  const container = new Container();
  for (const answer of [container.push(bytes), container.push(bytes)]) {
    expect(answer.ok || publicText(answer.refusal)).toContain(`The stream holds ${found}.`);
  }
});
