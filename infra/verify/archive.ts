// Reader of an export in one file: a tar or a zip, recognised by its bytes.
import type { BundleFiles } from '../../shared/audit/verify/bundle-files.ts';
import type { Archive } from './archive-source.ts';
import { readTar } from './read-tar.ts';
import { type Inflate, readZip, readZipFile } from './read-zip.ts';

type Read = () => Promise<Uint8Array | undefined>;

/** Returns the folder of the manifest. */
function rootOf(paths: readonly string[]): string {
  const rootBy = (name: string) =>
    paths
      .filter((path) => path === name || path.endsWith(`/${name}`))
      .sort((a, b) => a.length - b.length)[0]
      ?.slice(0, -name.length);
  return rootBy('manifest.note') ?? rootBy('manifest.json') ?? '';
}

/** Returns the files below the manifest's folder as a bundle. */
export function bundleOf(found: ReadonlyMap<string, Read>): BundleFiles {
  const root = rootOf([...found.keys()]);
  const files = new Map(
    [...found].flatMap(([path, read]) => (path.startsWith(root) ? [[path.slice(root.length), read] as const] : [])),
  );
  return { list: async () => [...files.keys()], read: async (path) => files.get(path)?.() };
}

const ZIP = [0x50, 0x4b, 0x03, 0x04];

/** Opens an archive; a file of another kind yields no files. */
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
