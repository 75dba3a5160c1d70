/** Size of a tar block, bytes. */
export const BLOCK = 512;

export const padding = (bytes: number): number => (BLOCK - (bytes % BLOCK)) % BLOCK;

const octal = (value: number, width: number): string => `${value.toString(8).padStart(width - 1, '0')}\0`;

/**
 * Writes the header of a plain file (POSIX ustar): equal name and size give equal bytes, without owner or
 * time. The name must fit its field of 100 bytes and the size eleven octal digits; MODEL_PATH_CHARACTERS
 * and MODEL_ARTIFACT_BYTES ensure both.
 */
export function writeHeader(name: string, size: number): Uint8Array {
  const header = Buffer.alloc(BLOCK);
  header.write(name, 0, 100, 'utf8');
  header.write(octal(0o644, 8), 100, 'latin1');
  header.write(octal(0, 8), 108, 'latin1');
  header.write(octal(0, 8), 116, 'latin1');
  header.write(octal(size, 12), 124, 'latin1');
  header.write(octal(0, 12), 136, 'latin1');
  header.write('        ', 148, 'latin1');
  header.write('0', 156, 'latin1');
  header.write('ustar\x0000', 257, 'latin1');
  header.write(octal(checksum(header), 7), 148, 'latin1');
  return header;
}

/** Returns the sum of all bytes, with those of the checksum itself as spaces. */
export function checksum(header: Uint8Array): number {
  let sum = 0;
  for (const [at, byte] of header.entries()) sum += at >= 148 && at < 156 ? 32 : byte;
  return sum;
}
