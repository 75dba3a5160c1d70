/** Containers an agent decodes. The caller's content type is only a hint ("application/octet-stream" is what many
 * clients send), so a file is known by its first bytes. */
export type SoundFormat = 'wav' | 'aiff' | 'flac' | 'mp3' | 'opus' | 'vorbis' | 'webm' | 'mp4' | 'aac' | 'amr';

/** Enough bytes to tell every format: an Ogg page header of one lacing value and the codec's name. */
export const sniffBytes = 64;

const ascii = (bytes: Uint8Array, start: number, text: string) =>
  bytes.length >= start + text.length && [...text].every((letter, i) => bytes[start + i] === letter.charCodeAt(0));

/** ISO/IEC 11172-3 §2.4.1.3: sync word, any MPEG version but the reserved one, layer III, a real bitrate and rate. */
function isMpegFrame(bytes: Uint8Array): boolean {
  const [sync, kind, rate] = [bytes[0] ?? 0, bytes[1] ?? 0, bytes[2] ?? 0xff];
  const version = (kind >> 3) & 3;
  const layer = (kind >> 1) & 3;
  return (
    sync === 0xff && kind >> 5 === 7 && version !== 1 && layer === 1 && rate >> 4 !== 15 && ((rate >> 2) & 3) !== 3
  );
}

/** Sample rates of AAC by index (ISO/IEC 14496-3 table 1.18). */
export const aacRates = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
] as const;

/** Returns the sample rate of an ADTS header (ISO/IEC 13818-7 §6.2); undefined for bytes that are none. */
export function adtsRate([sync = 0, kind = 0, form = 0xff]: Uint8Array): number | undefined {
  return sync === 0xff && (kind & 0xf6) === 0xf0 ? aacRates[(form >> 2) & 15] : undefined;
}

/** Types of the box that an MP4 or QuickTime file begins with (ISO/IEC 14496-12 §4.3). */
const firstBoxes = ['ftyp', 'moov', 'mdat', 'styp', 'wide'];

/** Returns the offset of the first packet of an Ogg page (RFC 3533 §6): 27 bytes and the lacing table. */
const oggPacket = (bytes: Uint8Array) => 27 + (bytes[26] ?? 0);

const signatures: readonly { format: SoundFormat; matches: (bytes: Uint8Array) => boolean }[] = [
  {
    format: 'wav',
    matches: (bytes) => (ascii(bytes, 0, 'RIFF') || ascii(bytes, 0, 'RF64')) && ascii(bytes, 8, 'WAVE'),
  },
  { format: 'aiff', matches: (bytes) => ascii(bytes, 0, 'FORM') && ascii(bytes, 8, 'AIF') },
  { format: 'flac', matches: (bytes) => ascii(bytes, 0, 'fLaC') },
  { format: 'flac', matches: (bytes) => ascii(bytes, 0, 'OggS') && ascii(bytes, oggPacket(bytes), '\x7fFLAC') },
  { format: 'opus', matches: (bytes) => ascii(bytes, 0, 'OggS') && ascii(bytes, oggPacket(bytes), 'OpusHead') },
  { format: 'vorbis', matches: (bytes) => ascii(bytes, 0, 'OggS') && ascii(bytes, oggPacket(bytes), '\x01vorbis') },
  { format: 'amr', matches: (bytes) => ascii(bytes, 0, '#!AMR') },
  { format: 'webm', matches: (bytes) => ascii(bytes, 0, '\x1a\x45\xdf\xa3') },
  { format: 'mp4', matches: (bytes) => firstBoxes.some((type) => ascii(bytes, 4, type)) },
  { format: 'aac', matches: (bytes) => adtsRate(bytes) !== undefined },
  { format: 'mp3', matches: (bytes) => ascii(bytes, 0, 'ID3') || isMpegFrame(bytes) },
];

/**
 * Detects the container of a file by its first `sniffBytes` bytes, fewer when the file is shorter. Returns undefined for
 * every file that agents do not decode.
 */
export function sniffFormat(bytes: Uint8Array): SoundFormat | undefined {
  return signatures.find(({ matches }) => matches(bytes))?.format;
}

/** Sound as decoded: one array per channel, all of one length, samples in -1 to 1. */
export interface SoundBlock {
  /** Samples per second and channel. */
  readonly rate: number;
  readonly channels: readonly Float32Array[];
}
