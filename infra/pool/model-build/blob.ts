import { type FileHandle, open } from 'node:fs/promises';

/** A part of an open file: an entry of a tar, or a whole file. */
export interface Blob {
  /** Name inside its source, for messages. */
  readonly name: string;
  readonly size: number;
  /** Reads up to `length` bytes; fewer at the end. */
  read(at: number, length: number): Promise<Uint8Array>;
  /** Location on disk, for copies. */
  readonly place: { readonly file: string; readonly at: number };
}

export async function openBlob(file: string, name: string): Promise<{ blob: Blob; close(): Promise<void> }> {
  const handle = await open(file);
  const { size } = await handle.stat();
  return { blob: partOf(handle, { file, at: 0 }, name, size), close: () => handle.close() };
}

export function partOf(handle: FileHandle, place: Blob['place'], name: string, size: number): Blob {
  return {
    name,
    size,
    place,
    async read(at, length) {
      const buffer = Buffer.alloc(Math.max(0, Math.min(length, size - at)));
      let got = 0;
      while (got < buffer.length) {
        const { bytesRead } = await handle.read(buffer, got, buffer.length - got, place.at + at + got);
        if (bytesRead === 0) break;
        got += bytesRead;
      }
      return buffer.subarray(0, got);
    },
  };
}

/** Returns a slice of a blob. */
export function sliceOf(blob: Blob, name: string, from: number, size: number): Blob {
  return {
    name,
    size,
    place: { file: blob.place.file, at: blob.place.at + from },
    read: (at, length) => blob.read(from + at, Math.max(0, Math.min(length, size - at))),
  };
}
