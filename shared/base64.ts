/** Standard base64 with padding. */
export function toBase64(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 8_192) text += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  return btoa(text);
}

/**
 * Decodes canonical base64; `undefined` for anything that `toBase64` would not write, since two texts must
 * not mean the same bytes.
 */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    return toBase64(bytes) === text ? bytes : undefined;
  } catch {
    return undefined;
  }
}

const URL_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
/** Digit of each character; 64 marks characters outside the alphabet. */
const urlValues = new Uint8Array(128).fill(64);
for (let digit = 0; digit < 64; digit += 1) urlValues[URL_DIGITS.charCodeAt(digit)] = digit;

/** Encodes base64url without padding (RFC 4648 §5). Hand-written: a log has millions of short values. */
export function toBase64Url(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 3) {
    const left = bytes.length - at;
    const three = ((bytes[at] as number) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    text += (URL_DIGITS[three >> 18] as string) + URL_DIGITS[(three >> 12) & 63];
    if (left > 1) text += URL_DIGITS[(three >> 6) & 63];
    if (left > 2) text += URL_DIGITS[three & 63];
  }
  return text;
}

/** Decodes canonical base64url; `undefined` for anything that `toBase64Url` would not write. */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  const over = text.length % 4;
  if (over === 1) return undefined;
  const bytes = new Uint8Array(Math.floor((text.length * 3) / 4));
  let [bits, held, to] = [0, 0, 0];
  for (let at = 0; at < text.length; at += 1) {
    const digit = urlValues[text.charCodeAt(at)] ?? 64;
    if (digit === 64) return undefined;
    bits = ((bits << 6) | digit) & 0xffff;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes[to] = bits >> held;
    to += 1;
  }
  // Unused bits must be zero.
  return (bits & ((1 << held) - 1)) === 0 ? bytes : undefined;
}
