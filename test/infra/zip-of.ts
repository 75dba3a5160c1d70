// Zips as other programs write them: deflated, with sizes in the directory.
import { crc32, deflateRawSync } from 'node:zlib';

const little = (bytes: 2 | 4, ...values: readonly number[]): Buffer =>
  Buffer.concat(
    values.map((value) => {
      const field = Buffer.alloc(bytes);
      field.writeUIntLE(value, 0, bytes);
      return field;
    }),
  );

/** `claims` changes the size that the directory gives for a file. */
export function zipOf(
  files: Iterable<readonly [name: string, content: Uint8Array]>,
  claims: (size: number) => number = (size) => size,
): Buffer {
  const [parts, directory]: [Buffer[], Buffer[]] = [[], []];
  let at = 0;
  for (const [name, content] of files) {
    const [written, packed] = [Buffer.from(name), deflateRawSync(content)];
    const sizes = little(4, crc32(content), packed.length, claims(content.length));
    // Version, flags (names in UTF-8), method, time and date.
    const facts = Buffer.concat([little(2, 20, 0x800, 8, 0, 0), sizes, little(2, written.length, 0)]);
    const local = Buffer.concat([little(4, 0x04034b50), facts, written, packed]);
    const rest = Buffer.concat([little(2, 0, 0, 0), little(4, 0, at)]);
    directory.push(Buffer.concat([little(4, 0x02014b50), little(2, 20), facts, rest, written]));
    parts.push(local);
    at += local.length;
  }
  const listed = Buffer.concat(directory);
  const counts = little(2, 0, 0, directory.length, directory.length);
  const end = Buffer.concat([little(4, 0x06054b50), counts, little(4, listed.length, at), little(2, 0)]);
  return Buffer.concat([...parts, listed, end]);
}
