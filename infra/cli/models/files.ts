// The files of a model in a folder, as signatures list them.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { HashName } from '../../../shared/registry/signature-key.ts';
import { SIGNATURE_FILES } from '../../../shared/registry/signature-manifest.ts';
import type { Files } from '../../../shared/registry/verify-files.ts';
import { followSteps } from '../../pool/models/config/read-parts.ts';

/** All of a folder, or those parts of it: of a repository, the models that one revision is made of, and their steps. */
export function openFolder(folder: string, parts: readonly string[] = []): Files {
  return {
    async list() {
      const models = await followSteps(folder, parts);
      const places = parts.length > 0 ? models.map((part) => path.join(folder, part)) : [folder];
      const found = await Promise.all(places.map((place) => readdir(place, { withFileTypes: true, recursive: true })));
      const entries = found.flat();
      // A link may lead anywhere: what it names is not in the folder.
      const odd = entries.find((entry) => !entry.isFile() && !entry.isDirectory());
      if (odd) throw new Error(`${path.join(odd.parentPath, odd.name)} is neither a file nor a folder`);
      return entries
        .filter((entry) => entry.isFile())
        .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'));
    },
    open: (file) => createReadStream(path.join(folder, file)),
    hash(name) {
      const made = createHash(name);
      return { update: (bytes) => made.update(bytes), finish: () => made.digest('hex') };
    },
  };
}

export interface Digests {
  readonly name: string;
  readonly sha256: string;
  readonly sm3: string;
}

/** Both digests of every file but the signatures, in one pass. */
export async function digestFolder(folder: string, parts: readonly string[]): Promise<Digests[]> {
  const files = openFolder(folder, parts);
  const digests: Digests[] = [];
  for (const name of (await files.list()).filter((file) => !SIGNATURE_FILES.includes(file))) {
    const made = { sha256: files.hash('sha256'), sm3: files.hash('sm3') };
    for await (const chunk of files.open(name)) for (const hash of Object.values(made)) hash.update(chunk);
    digests.push({ name, sha256: made.sha256.finish(), sm3: made.sm3.finish() });
  }
  return digests;
}

const ENDINGS: Record<HashName, string> = { sha256: '.sig', sm3: '.sm2.sig' };

/** Returns the path of a signature: in the folder, named after the first part. */
export const signatureOf = (folder: string, [first = 'model']: readonly string[], hash: HashName): string =>
  path.join(folder, `${first}${ENDINGS[hash]}`);
