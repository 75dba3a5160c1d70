/** Decodes standard base64. Returns undefined for anything else. */
export function readBase64(text: string): Uint8Array | undefined {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const characters = text.length - padding;
  if (characters % 4 === 1) return undefined;
  const bytes = Buffer.from(text, 'base64');
  // The decoder skips characters outside the alphabet, so bytes are missing then.
  return bytes.length === Math.floor((characters * 3) / 4) ? bytes : undefined;
}
