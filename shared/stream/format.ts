import { z } from 'zod';

/**
 * Encodings of live audio, as Deepgram names them. `opus` is one raw packet per message (RFC 6716); `webm` is Opus in
 * WebM or Matroska, `aac` is AAC-LC in ADTS.
 */
export const encodings = ['linear16', 'linear32', 'mulaw', 'alaw', 'opus', 'ogg-opus', 'webm', 'aac'] as const;
export type Encoding = (typeof encodings)[number];

/** `linear32` is little-endian IEEE float, as `linear16` is little-endian integer; samples of channels interleave. */
export const streamFormat = z.object({
  encoding: z.enum(encodings),
  /** Samples per second and channel, 8,000 to 48,000; for Opus 48,000 (RFC 7845 §5.1), for AAC that of its header. */
  rate: z.number().int().min(8_000).max(48_000),
  channels: z.union([z.literal(1), z.literal(2)]),
});
export type StreamFormat = z.infer<typeof streamFormat>;

const sampleBytes: Readonly<Partial<Record<Encoding, number>>> = { linear16: 2, linear32: 4, mulaw: 1, alaw: 1 };

/** Bytes that belong together: one sample of each channel; 1 where packets do. */
export const frameBytes = ({ encoding, channels }: StreamFormat): number =>
  (sampleBytes[encoding] ?? 1) * (sampleBytes[encoding] ? channels : 1);

/** Bytes of one second, `undefined` for formats that are packed. */
export function bytesPerSecond({ encoding, rate, channels }: StreamFormat): number | undefined {
  const bytes = sampleBytes[encoding];
  return bytes === undefined ? undefined : bytes * rate * channels;
}
