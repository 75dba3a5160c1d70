// An export in one file: a tar or a zip, told by its bytes and not by its name.
import type { BundleFiles } from '../../shared/audit/verify/bundle-files.ts';
import { readTar } from './read-tar.ts';
import { type Inflate, readZip, readZipFile } from './read-zip.ts';

export interface Archive {
  /** A part of the file; less at its end. */
  slice(from: number, to: number): Promise<Uint8Array>;
  readonly size: number;
}

type Read = () => Promise<Uint8Array | undefined>;

/** The folder that the manifest is in, wherever in what was given that is. */
function rootOf(paths: readonly string[]): string {
  const rootBy = (name: string) =>
    paths
      .filter((path) => path === name || path.endsWith(`/${name}`))
      .sort((a, b) => a.length - b.length)[0]
      ?.slice(0, -name.length);
  return rootBy('manifest.note') ?? rootBy('manifest.json') ?? '';
}

/** Files by their paths, as a bundle: what lies outside of its folder is left out. */
export function bundleOf(found: ReadonlyMap<string, Read>): BundleFiles {
  const root = rootOf([...found.keys()]);
  const files = new Map(
    [...found].flatMap(([path, read]) => (path.startsWith(root) ? [[path.slice(root.length), read] as const] : [])),
  );
  return { list: async () => [...files.keys()], read: async (path) => files.get(path)?.() };
}

const ZIP = [0x50, 0x4b, 0x03, 0x04];

/** The files of an archive; none of a file that is neither. */
export async function openArchive(archive: Archive, inflate: Inflate): Promise<BundleFiles> {
  const magic = await archive.slice(0, ZIP.length);
  if (ZIP.every((byte, at) => magic[at] === byte)) {
    const found = (await readZip(archive)) ?? new Map();
    const read = [...found].map(([path, entry]) => [path, () => readZipFile(archive, entry, inflate)] as const);
    return bundleOf(new Map(read));
  }
  const found = await readTar(archive);
  return bundleOf(new Map([...found].map(([path, { from, to }]) => [path, () => archive.slice(from, to)])));
}
