import { bytesPerSecond, type StreamFormat } from '../../shared/stream/format.ts';

/**
 * Returns the seconds of one message, as far as the format shows it without decoding: by its bytes, or by the first byte of
 * an Opus packet (RFC 6716 §3.1). Returns undefined for containers.
 */
export function secondsOf(audio: Uint8Array, format: StreamFormat): number | undefined {
  const rate = bytesPerSecond(format);
  if (rate !== undefined) return audio.length / rate;
  return format.encoding === 'opus' ? opusSeconds(audio) : undefined;
}

/** Milliseconds of a frame by configuration number (RFC 6716, table 2). */
const silk = [10, 20, 40, 60];
const hybrid = [10, 20];
const celt = [2.5, 5, 10, 20];

function opusSeconds(packet: Uint8Array): number {
  const [first, second = 0] = packet;
  if (first === undefined) return 0;
  const config = first >> 3;
  const frame = (config < 12 ? silk[config % 4] : config < 16 ? hybrid[config % 2] : celt[config % 4]) ?? 0;
  const code = first & 3;
  const frames = code === 0 ? 1 : code < 3 ? 2 : second & 0x3f;
  // A valid packet holds 120 ms at most (§3.2.5).
  return Math.min(frame * frames, 120) / 1_000;
}
