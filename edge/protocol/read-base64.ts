/** Bytes of standard base64; `undefined` for anything else. */
export function readBase64(text: string): Uint8Array | undefined {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const characters = text.length - padding;
  if (characters % 4 === 1) return undefined;
  const bytes = Buffer.from(text, 'base64');
  // Characters that are none of the alphabet are skipped by the decoder, and then some bytes are missing.
  return bytes.length === Math.floor((characters * 3) / 4) ? bytes : undefined;
}
