// ITU-T G.711: 16-bit samples to logarithmic codes of 8 bits.

const MU_BIAS = 0x84;
const MU_MAX = 0x7fff - MU_BIAS;

export function toMuLaw(sample: number): number {
  const magnitude = Math.min(Math.abs(sample), MU_MAX) + MU_BIAS;
  const segment = 24 - Math.clz32(magnitude);
  const code = (sample < 0 ? 0x80 : 0) | (segment << 4) | ((magnitude >> (segment + 3)) & 0x0f);
  return ~code & 0xff;
}

export function toALaw(sample: number): number {
  // Negative samples are one's complements, so that both halves have as many codes.
  const magnitude = sample < 0 ? ~sample : sample;
  const segment = Math.max(0, 24 - Math.clz32(magnitude));
  const step = (magnitude >> (segment === 0 ? 4 : segment + 3)) & 0x0f;
  return ((sample < 0 ? 0 : 0x80) | (segment << 4) | step) ^ 0x55;
}
