// Bundles from chosen or dropped files: a folder, or an archive of one.
import type { BundleFiles } from '../../shared/audit/verify/bundle-files.ts';
import { joined } from '../../shared/bytes.ts';
import { bundleOf, openArchive } from './archive.ts';

const bytesOf = async (blob: Blob): Promise<Uint8Array> => new Uint8Array(await blob.arrayBuffer());

/** Opens a single file as an archive, otherwise a folder. The bytes of a file decide its kind. */
async function bundleIn(files: ReadonlyMap<string, File>): Promise<BundleFiles> {
  const [only] = files.values();
  if (files.size === 1 && only) {
    const slice = (from: number, to: number) => bytesOf(only.slice(from, to));
    return openArchive({ size: only.size, slice }, inflate);
  }
  return bundleOf(new Map([...files].map(([path, file]) => [path, () => bytesOf(file)])));
}

/** Unpacks as the browser does, and stops at the bound. Not every browser iterates over a stream. */
async function inflate(bytes: Uint8Array, most: number): Promise<Uint8Array | undefined> {
  const packed = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream();
  const reader = packed.pipeThrough(new DecompressionStream('deflate-raw')).getReader();
  const pieces: Uint8Array[] = [];
  try {
    for (let length = 0; ; ) {
      const { done, value } = await reader.read();
      if (done) return joined(pieces);
      length += value.length;
      if (length > most) return undefined;
      pieces.push(value);
    }
  } catch {
    return undefined;
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Opens the files of an input for folders or files. */
export const chosenFiles = (list: readonly File[]): Promise<BundleFiles> =>
  bundleIn(new Map(list.map((file) => [file.webkitRelativePath || file.name, file])));

/** Opens dropped files, and walks folders. Call it before the event ends. */
export async function droppedFiles(items: DataTransferItemList): Promise<BundleFiles> {
  const found = new Map<string, File>();
  // Chromium gives entries of a folder to no page that was opened from a file, but handles to every page.
  const handles = await Promise.all([...items].map(handleOf));
  for (const [at, one] of handles.entries()) {
    if (one && 'kind' in one) await walkHandle(one, at === 0 ? '' : `${at}/`, found);
    else if (one) await walkEntry(one, found);
  }
  return bundleIn(found);
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
    // `readEntries` returns some entries at a time, at the end none.
    const some = await new Promise<FileSystemEntry[]>((settle, fail) => reader.readEntries(settle, fail));
    if (some.length === 0) return;
    for (const one of some) await walkEntry(one, found);
  }
}
