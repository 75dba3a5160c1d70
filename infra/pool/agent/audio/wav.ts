import { MODEL_RATE } from './mono.ts';

/** Bytes of the header. */
const HEADER = 44;

/** Samples as a WAV file of one channel of 16 bits at 16 kHz. Shares their memory. */
export const wavOf = (samples: Int16Array): Uint8Array[] => [
  wavHeader(samples.byteLength, MODEL_RATE),
  new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength),
];

/** Before `bytes` bytes of samples (RIFF multimedia data standard), one channel of 16 bits at `rate` Hz. */
export function wavHeader(bytes: number, rate: number): Uint8Array {
  const header = new Uint8Array(HEADER);
  const view = new DataView(header.buffer);
  const text = (at: number, letters: string) => header.set(new TextEncoder().encode(letters), at);
  text(0, 'RIFF');
  view.setUint32(4, HEADER - 8 + bytes, true);
  text(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, 'data');
  view.setUint32(40, bytes, true);
  return header;
}
