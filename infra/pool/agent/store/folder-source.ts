import { createReadStream } from 'node:fs';
import path from 'node:path';
import type { Source } from './contract.ts';

/** Files of a mounted folder, by digest: a shared file system or a block volume (T6). Nothing in it is trusted. */
export const folderSource = (folder: string): Source => ({
  read: ({ digest }, from, signal) => createReadStream(path.join(folder, digest), { start: from, signal }),
});
