const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
const digits = (bytes: Uint8Array, from: number, to: number): string => {
  let text = '';
  for (let at = from; at < to; at += 1) text += hex[bytes[at] ?? 0];
  return text;
};

/**
 * Returns a time-ordered unique id: UUID version 7 (RFC 9562 §5.7). `now` is in epoch ms; `random` holds ten
 * random bytes.
 */
export function eventId(now: number, random: Uint8Array): string {
  const time = Math.floor(now).toString(16).padStart(12, '0');
  const version = hex[0x70 | ((random[0] ?? 0) & 0x0f)];
  const variant = hex[0x80 | ((random[2] ?? 0) & 0x3f)];
  const start = `${time.slice(0, 8)}-${time.slice(8)}-${version}${digits(random, 1, 2)}-`;
  return `${start}${variant}${digits(random, 3, 4)}-${digits(random, 4, 10)}`;
}
