import type { WavFormat } from '../../shared/speech/wav.ts';

/** Size in the header of a file of unknown length; readers go on until the file ends. */
const OPEN_ENDED = 0xffffffff;

/** Returns the header of a WAV file, 44 bytes (RIFF multimedia data standard). */
export function wavHeader({ rate, channels, bits, float }: WavFormat): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(44);
  const view = new DataView(header.buffer);
  const write = (at: number, text: string) => header.set(new TextEncoder().encode(text), at);
  write(0, 'RIFF');
  view.setUint32(4, OPEN_ENDED, true);
  write(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, float ? 3 : 1, true);
  view.setUint16(22, channels, true);
  view.setUint32(24, rate, true);
  const frameBytes = (channels * bits) / 8;
  view.setUint32(28, rate * frameBytes, true);
  view.setUint16(32, frameBytes, true);
  view.setUint16(34, bits, true);
  write(36, 'data');
  view.setUint32(40, OPEN_ENDED, true);
  return header;
}
