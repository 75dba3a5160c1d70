/** A position takes six bytes, most significant first: an hour of any format is over 30 bits. */
export const POSITION_BYTES = 6;

/** Writes `position` into `POSITION_BYTES` bytes from `at` on. */
export function writePosition(into: Uint8Array, at: number, position: number): void {
  let rest = position;
  for (let byte = at + POSITION_BYTES - 1; byte >= at; byte--) {
    into[byte] = rest % 256;
    rest = Math.floor(rest / 256);
  }
}

/** The position written from `at` on; `bytes` must reach so far. */
export function readPosition(bytes: Uint8Array, at: number): number {
  let position = 0;
  for (let byte = at; byte < at + POSITION_BYTES; byte++) position = position * 256 + (bytes[byte] as number);
  return position;
}
