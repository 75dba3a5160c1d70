// Files of a tar archive, found without unpacking it (ustar, and names of GNU and pax).
import type { Archive } from './archive-source.ts';

const BLOCK = 512;

const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes).replace(/\0.*$/s, '');

/** Returns the byte range of each file by path. */
export async function readTar(archive: Archive): Promise<Map<string, { readonly from: number; readonly to: number }>> {
  const found = new Map<string, { from: number; to: number }>();
  let longName: string | undefined;
  for (let at = 0; at + BLOCK <= archive.size; ) {
    const head = await archive.slice(at, at + BLOCK);
    const name = textOf(head.subarray(0, 100));
    const size = Number.parseInt(textOf(head.subarray(124, 136)).trim() || '0', 8);
    if (name === '' || Number.isNaN(size)) break;
    const kind = String.fromCharCode(head[156] ?? 0);
    const prefix = textOf(head.subarray(257, 262)) === 'ustar' ? textOf(head.subarray(345, 500)) : '';
    const from = at + BLOCK;
    const body = () => archive.slice(from, from + size);
    if (kind === 'L') longName = textOf(await body());
    else if (kind === 'x') longName = /\d+ path=(.*)\n/.exec(new TextDecoder().decode(await body()))?.[1];
    else {
      const path = longName ?? (prefix === '' ? name : `${prefix}/${name}`);
      if (kind === '0' || kind === '\0') found.set(path.replace(/^\.\//, ''), { from, to: from + size });
      longName = undefined;
    }
    at = from + Math.ceil(size / BLOCK) * BLOCK;
  }
  return found;
}
