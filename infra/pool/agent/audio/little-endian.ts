import { endianness } from 'node:os';

/** Returns a copy of 16-bit samples as bytes, the low one first. */
export function littleEndian(samples: Int16Array): Buffer {
  const bytes = Buffer.copyBytesFrom(samples);
  return endianness() === 'LE' ? bytes : bytes.swap16();
}
