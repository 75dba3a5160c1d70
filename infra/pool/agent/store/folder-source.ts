import { createReadStream } from 'node:fs';
import path from 'node:path';
import type { Source } from './contract.ts';

/** Reads files of a mounted folder: a shared file system or a block volume (T6). Nothing in it is trusted. */
export const folderOf = (folder: string, names: ReadonlyMap<string, string>): Source => ({
  read: ({ digest }, from, signal) => {
    const name = names.get(digest);
    if (name === undefined) throw new Error(`${digest} is no file of the folder`);
    return createReadStream(path.join(folder, name), { start: from, signal });
  },
});
