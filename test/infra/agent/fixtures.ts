import { oggCrc } from '../../../infra/pool/agent/audio/ogg.ts';
import { wav } from '../../wav.ts';

/** A WAV file of samples from -1 to 1. `dataBytes` lies about the length. */
export function wavFile(samples: Float32Array, rate = 16_000, dataBytes = samples.length * 2): Uint8Array {
  return wav(
    Int16Array.from(samples, (sample) => Math.round(sample * 32_767)),
    rate,
    dataBytes,
  );
}

const crcOf = (bytes: readonly number[], bits: 8 | 16, polynomial: number) =>
  bytes.reduce((start, byte) => {
    let crc = start ^ (byte << (bits - 8));
    for (let i = 0; i < 8; i++) crc = crc & (1 << (bits - 1)) ? (crc << 1) ^ polynomial : crc << 1;
    return crc & (2 ** bits - 1);
  }, 0);

/** Frames of 65,535 equal samples each, mono, 16 bit, 8 kHz: 14 bytes for more than 8 s of sound (RFC 9639 §9). */
export function flacFrames(count: number, sample = 0): Uint8Array[] {
  return Array.from({ length: count }, (_, i) => {
    const number = i < 0x80 ? [i] : [0xc0 | (i >> 6), 0x80 | (i & 0x3f)];
    const head = [0xff, 0xf8, 0x74, 0x08, ...number, 0xff, 0xfe];
    const body = [...head, crcOf(head, 8, 0x07), 0, (sample >> 8) & 255, sample & 255];
    const crc = crcOf(body, 16, 0x8005);
    return Uint8Array.from([...body, crc >> 8, crc & 255]);
  });
}

/** Signature and STREAMINFO for them; `samples` 0: unknown. */
export function flacHead(samples = 0): Uint8Array {
  const bytes = new Uint8Array(42);
  bytes.set([0x66, 0x4c, 0x61, 0x43, 0x80, 0, 0, 34, 0xff, 0xff, 0xff, 0xff]);
  const view = new DataView(bytes.buffer);
  view.setUint32(18, (8_000 << 12) | (15 << 4));
  view.setUint32(22, samples);
  return bytes;
}

/** Returns one page of an Ogg stream with these packets, each at most 254 bytes, and its checksum. */
export function oggPage(
  number: number,
  packets: readonly Uint8Array[],
  flags = number === 0 ? 2 : 0,
  granule = 0,
): Uint8Array {
  const header = new Uint8Array(27 + packets.length);
  header.set(new TextEncoder().encode('OggS'));
  header[5] = flags;
  new DataView(header.buffer).setUint32(6, granule, true);
  header[18] = number & 255;
  header[19] = number >> 8;
  header[26] = packets.length;
  header.set(
    packets.map(({ length }) => length),
    27,
  );
  return withCrc(Buffer.concat([header, ...packets]));
}

/** A page of Ogg with packets of one byte each, 20 ms of silence, and its checksum. The first two have headers. */
export function silentPage(serial: number, packets: number, sequence = 2): Uint8Array {
  const page = new Uint8Array(27 + packets + packets);
  page.set(new TextEncoder().encode('OggS'));
  new DataView(page.buffer).setUint32(14, serial, true);
  page[26] = packets;
  page.fill(1, 27, 27 + packets);
  page.fill(0x08, 27 + packets);
  new DataView(page.buffer).setUint32(18, sequence, true);
  return withCrc(page);
}

/** Returns `packets` packets of silence as the page that follows the last page of `file`. */
export function silenceAfter(file: Uint8Array, packets: number): Uint8Array {
  const last = new DataView(file.buffer, file.byteOffset + Buffer.from(file).lastIndexOf('OggS'));
  return silentPage(last.getUint32(14, true), packets, last.getUint32(18, true) + 1);
}

/** Splits an Ogg file into its pages. */
export function oggPages(file: Uint8Array): Uint8Array[] {
  const pages: Uint8Array[] = [];
  for (let at = 0; at < file.length; at += pages.at(-1)?.length ?? 0) {
    const lacing = file.subarray(at + 27, at + 27 + (file[at + 26] ?? 0));
    pages.push(file.slice(at, at + 27 + lacing.length + lacing.reduce((sum, size) => sum + size, 0)));
  }
  return pages;
}

/** With the checksum that its bytes have now. */
export function withCrc(page: Uint8Array): Uint8Array {
  page.fill(0, 22, 26);
  new DataView(page.buffer, page.byteOffset).setUint32(22, oggCrc(page), true);
  return page;
}

/** Pulses through a formant, with a falling pitch: enough of a voice for a voice detector. Always the same. */
export function voice(seconds: number, rate = 16_000): Float32Array {
  const samples = new Float32Array(Math.round(seconds * rate));
  const resonances = [
    { hz: 600, width: 80, y1: 0, y2: 0 },
    { hz: 1_200, width: 120, y1: 0, y2: 0 },
    { hz: 2_500, width: 160, y1: 0, y2: 0 },
  ];
  let phase = 0;
  for (let i = 0; i < samples.length; i++) {
    phase += (120 + 15 * Math.sin(i / (0.15 * rate))) / rate;
    const pulse = phase >= 1 ? 1 : 0;
    phase -= pulse;
    let sum = 0;
    for (const r of resonances) {
      const radius = Math.exp((-Math.PI * r.width) / rate);
      const y = pulse + 2 * radius * Math.cos((2 * Math.PI * r.hz) / rate) * r.y1 - radius * radius * r.y2;
      r.y2 = r.y1;
      r.y1 = y;
      sum += y;
    }
    samples[i] = sum * 0.05;
  }
  return samples;
}

export const silence = (seconds: number, rate = 16_000): Float32Array => new Float32Array(Math.round(seconds * rate));

export function joinSamples(...parts: readonly Float32Array[]): Float32Array {
  const out = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

export const boundary = 'auricle-boundary';
export const multipart = `multipart/form-data; boundary=${boundary}`;

export interface Part {
  readonly name: string;
  readonly value: string | Uint8Array;
  readonly filename?: string;
}

export function formBytes(parts: readonly Part[], end = true): Uint8Array {
  const pieces = parts.flatMap(({ name, value, filename }) => [
    Buffer.from(
      `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${filename ? `; filename="${filename}"\r\ncontent-type: application/octet-stream` : ''}\r\n\r\n`,
    ),
    Buffer.from(value),
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...pieces, ...(end ? [Buffer.from(`--${boundary}--\r\n`)] : [])]);
}

export const audioForm = (file: Uint8Array, fields: readonly Part[] = [{ name: 'model', value: 'test-en' }]) =>
  formBytes([...fields, { name: 'file', value: file, filename: 'a.wav' }]);
