// Verifies that a known signer has signed the files of a revision when it enters a tier: for an agent, when
// its files are new in the repository that the engine loads from. A switch to a revision that is there
// verifies nothing.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { jsonOf } from '../../../../shared/json-text.ts';
import { type Refusal, refuse, shortened } from '../../../../shared/refusal.ts';
import { openBundle } from '../../../../shared/registry/signature-bundle.ts';
import type { SignerKey } from '../../../../shared/registry/signature-key.ts';
import type { Manifest } from '../../../../shared/registry/signature-manifest.ts';
import { verifyFiles } from '../../../../shared/registry/verify-files.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { FoundRevision } from './revision.ts';

/** Signatures of a model lie beside its folder: `auricle model sign REPOSITORY MODEL PART…` puts them there. */
const ENDINGS = ['.sig', '.sm2.sig'] as const;

/** Returns the signer; `undefined` without a signature. Refuses a signature that does not fit the files. */
export type VerifyEntry = (model: string, found: FoundRevision) => Promise<Result<string | undefined>>;

/** Returns the broken rule of a refusal, or its reason. */
export const ruleOf = (refusal: Refusal): string => String(shortened(refusal).params?.rule ?? refusal.reason);

const changed = (rule: string) => no(refuse('signature_invalid', { rule }));

export function createVerifyEntry(repository: string, signers: readonly SignerKey[]): VerifyEntry {
  /** Verified revisions: a revision is its bytes, so the same one under the same signature is valid again. */
  const good = new Map<string, string>();

  async function verify(text: string, found: FoundRevision): Promise<Result<string>> {
    const seen = `${found.revision} ${createHash('sha256').update(text).digest('hex')}`;
    const before = good.get(seen);
    if (before !== undefined) return ok(before);
    const opened = await openBundle(jsonOf(text), signers);
    if (!opened.ok) return opened;
    const { manifest, signer } = opened.value;
    const same = await compare(repository, manifest, found);
    if (!same.ok) return same;
    good.set(seen, signer);
    return ok(signer);
  }

  return async (model, found) => {
    let signer: string | undefined;
    for (const ending of ENDINGS) {
      const text = await readText(path.join(repository, `${model}${ending}`));
      if (text === undefined) continue;
      const verified = await verify(text, found);
      if (!verified.ok) return verified;
      signer ??= verified.value;
    }
    return ok(signer);
  };
}

/** SHA-256 of whole files is known: the revision is made of it. Other digests are made here, piece by piece. */
async function compare(
  repository: string,
  manifest: Manifest,
  { revision, files }: FoundRevision,
): Promise<Result<unknown>> {
  if (manifest.hash === 'sha256' && manifest.method === 'files') return compareDigests(manifest, files);
  const verified = await verifyFiles(manifest, {
    list: async () => files.map(({ name }) => name),
    open: (file) => createReadStream(path.join(repository, file)),
    hash(name) {
      const made = createHash(name);
      return { update: (bytes) => made.update(bytes), finish: () => made.digest('hex') };
    },
  });
  if (!verified.ok) return verified;
  return verified.value.revision === revision ? ok(undefined) : changed('its files changed while they were read');
}

/** Compares the files that a manifest signs whole, by SHA-256, with those of a revision. */
export function compareDigests(
  { pieces }: Manifest,
  files: readonly { readonly name: string; readonly digest: string }[],
): Result<undefined> {
  const signed = new Map(pieces.map(({ file, digest }) => [file, digest]));
  for (const { name, digest } of files) {
    if (!signed.has(name)) return changed(`the file "${name}" is not signed`);
    if (signed.get(name) !== digest) return changed(`the file "${name}" is not the one that was signed`);
  }
  const there = new Set(files.map(({ name }) => name));
  const missing = pieces.find(({ file }) => !there.has(file));
  return missing ? changed(`the file "${missing.file}" is missing`) : ok(undefined);
}

const readText = (file: string): Promise<string | undefined> =>
  readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
