/** Samples of one piece after the other; a single piece is not copied. */
export function joinSamples(parts: readonly Float32Array[]): Float32Array {
  const [only] = parts;
  if (only && parts.length === 1) return only;
  const joined = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}
