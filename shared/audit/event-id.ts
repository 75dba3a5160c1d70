/**
 * A time-ordered unique id: UUID version 7 (RFC 9562 §5.7).
 * `now` is in milliseconds since 1970; `random` holds ten random bytes.
 */
export function eventId(now: number, random: Uint8Array): string {
  const time = Math.floor(now).toString(16).padStart(12, '0');
  const tail = [...random.subarray(0, 10)];
  tail[0] = 0x70 | ((tail[0] ?? 0) & 0x0f);
  tail[2] = 0x80 | ((tail[2] ?? 0) & 0x3f);
  const hex = tail.map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return `${time.slice(0, 8)}-${time.slice(8)}-${hex.slice(0, 4)}-${hex.slice(4, 8)}-${hex.slice(8)}`;
}
