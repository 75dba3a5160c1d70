/** Bytes of the header. */
const HEADER = 44;
/** Size in the header of a file of unknown length, as FFmpeg writes it; readers go on until the file ends. */
const OPEN_ENDED = 0xffffffff;

/** Format tags: PCM, IEEE float, and those of G.711. */
export type WavTag = 1 | 3 | 6 | 7;

export interface WavHeaderFields {
  /** Samples a second. */
  readonly rate: number;
  /** Default: 1, PCM. */
  readonly tag?: WavTag;
  /** Default: 1. */
  readonly channels?: number;
  /** Bits of a sample. Default: 16. */
  readonly bits?: number;
  /** Bytes of samples behind the header. Absent when their number is not known. */
  readonly bytes?: number;
}

/** Returns the header of a WAV file, 44 bytes (RIFF multimedia data standard). */
export function wavHeader({ rate, tag = 1, channels = 1, bits = 16, bytes }: WavHeaderFields): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(HEADER);
  const view = new DataView(header.buffer);
  const text = (at: number, letters: string) => header.set(new TextEncoder().encode(letters), at);
  const frameBytes = (channels * bits) / 8;
  text(0, 'RIFF');
  view.setUint32(4, bytes === undefined ? OPEN_ENDED : HEADER - 8 + bytes, true);
  text(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, tag, true);
  view.setUint16(22, channels, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * frameBytes, true);
  view.setUint16(32, frameBytes, true);
  view.setUint16(34, bits, true);
  text(36, 'data');
  view.setUint32(40, bytes ?? OPEN_ENDED, true);
  return header;
}
