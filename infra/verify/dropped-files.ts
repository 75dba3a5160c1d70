// What somebody chose or dropped, as files of a bundle: a folder, or an archive of one.
import type { BundleFiles } from '../../shared/audit/verify/bundle-files.ts';
import { readTar } from './read-tar.ts';

const bytesOf = async (blob: Blob): Promise<Uint8Array> => new Uint8Array(await blob.arrayBuffer());

/** The folder that the manifest is in, wherever in what was dropped that is. */
function rooted(paths: readonly string[]): (path: string) => string | undefined {
  const manifest =
    paths.filter((path) => /(^|\/)manifest\.json$/.test(path)).sort((a, b) => a.length - b.length)[0] ?? '';
  const root = manifest.slice(0, -'manifest.json'.length);
  return (path) => (path.startsWith(root) ? path.slice(root.length) : undefined);
}

function bundleOf(read: ReadonlyMap<string, () => Promise<Uint8Array>>): BundleFiles {
  const below = rooted([...read.keys()]);
  const files = new Map(
    [...read].flatMap(([path, get]) => {
      const name = below(path);
      return name === undefined ? [] : [[name, get] as const];
    }),
  );
  return { list: async () => [...files.keys()], read: async (path) => files.get(path)?.() };
}

async function openTar(file: File): Promise<BundleFiles> {
  const slice = (from: number, to: number) => bytesOf(file.slice(from, to));
  const found = await readTar({ size: file.size, slice });
  return bundleOf(new Map([...found].map(([path, { from, to }]) => [path, () => slice(from, to)])));
}

/** Of an input for folders or files. */
export async function chosenFiles(list: Iterable<File>): Promise<BundleFiles> {
  const files = [...list];
  const [first] = files;
  if (files.length === 1 && first && /\.tar$/.test(first.name)) return openTar(first);
  return bundleOf(new Map(files.map((file) => [file.webkitRelativePath || file.name, () => bytesOf(file)])));
}

/** Of a drop: folders are gone through. Has to be called before the event is over. */
export async function droppedFiles(items: DataTransferItemList): Promise<BundleFiles> {
  const found = new Map<string, File>();
  // Chromium gives entries of a folder to no page that was opened from a file, but handles to every page.
  const handles = await Promise.all([...items].map(handleOf));
  for (const [at, one] of handles.entries()) {
    if (one && 'kind' in one) await walkHandle(one, at === 0 ? '' : `${at}/`, found);
    else if (one) await walkEntry(one, found);
  }
  const [only] = found.values();
  if (found.size === 1 && only && /\.tar$/.test(only.name)) return openTar(only);
  return bundleOf(new Map([...found].map(([path, file]) => [path, () => bytesOf(file)])));
}

type Handle = FileSystemFileHandle | FileSystemDirectoryHandle;
type WithHandles = DataTransferItem & { getAsFileSystemHandle?(): Promise<Handle | null> };

function handleOf(item: WithHandles): Promise<Handle | FileSystemEntry | null> {
  return item.getAsFileSystemHandle?.() ?? Promise.resolve(item.webkitGetAsEntry());
}

async function walkHandle(handle: Handle, prefix: string, found: Map<string, File>): Promise<void> {
  const path = `${prefix}${handle.name}`;
  if (handle.kind === 'file') found.set(path, await (handle as FileSystemFileHandle).getFile());
  else for await (const one of (handle as FileSystemDirectoryHandle).values()) await walkHandle(one, `${path}/`, found);
}

async function walkEntry(entry: FileSystemEntry, found: Map<string, File>): Promise<void> {
  if (entry.isFile) {
    const file = await new Promise<File>((settle, fail) => (entry as FileSystemFileEntry).file(settle, fail));
    found.set(entry.fullPath.replace(/^\//, ''), file);
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    // Some at a time, until there are none.
    const some = await new Promise<FileSystemEntry[]>((settle, fail) => reader.readEntries(settle, fail));
    if (some.length === 0) return;
    for (const one of some) await walkEntry(one, found);
  }
}
