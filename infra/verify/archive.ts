// Reader of an export in a zip.
import type { BundleFiles } from '../../shared/audit/verify/bundle-files.ts';
import type { Archive } from './archive-source.ts';
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

/** Opens a zip; a file of another kind yields no files. */
export async function openArchive(archive: Archive, inflate: Inflate): Promise<BundleFiles> {
  const found = (await readZip(archive)) ?? new Map();
  const read = [...found].map(([path, entry]) => [path, () => readZipFile(archive, entry, inflate)] as const);
  return bundleOf(new Map(read));
}
