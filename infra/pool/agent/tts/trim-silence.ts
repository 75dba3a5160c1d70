/** Silence threshold, of full scale: 48 dB below. */
const QUIET = 0.004;
/** Silence that stays at both ends, and within it the fade that avoids a click. */
const EDGE_MS = 30;
const FADE_MS = 4;

/** Sound without the silence around it; empty when it is nothing but silence. */
export function trimSilence(sound: Float32Array, sampleRate: number): Float32Array {
  const edge = Math.round((EDGE_MS * sampleRate) / 1_000);
  const first = sound.findIndex((sample) => Math.abs(sample) > QUIET);
  if (first < 0) return new Float32Array(0);
  const last = sound.findLastIndex((sample) => Math.abs(sample) > QUIET);
  const cut = sound.slice(Math.max(0, first - edge), last + 1 + edge);
  const fade = Math.min(Math.round((FADE_MS * sampleRate) / 1_000), cut.length);
  for (let at = 0; at < fade; at++) {
    cut[at]! *= at / fade;
    cut[cut.length - 1 - at]! *= at / fade;
  }
  return cut;
}

/** Sounds one after the other as 16-bit samples, each with its silence behind it. */
export function joinSounds(parts: readonly { readonly sound: Float32Array; readonly silence: number }[]): Int16Array {
  const joined = new Int16Array(parts.reduce((sum, { sound, silence }) => sum + sound.length + silence, 0));
  let at = 0;
  for (const { sound, silence } of parts) {
    for (const sample of sound) joined[at++] = Math.max(-32_768, Math.min(32_767, Math.round(sample * 32_767)));
    at += silence;
  }
  return joined;
}
