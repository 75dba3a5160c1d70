// Registration of a revision by the signature of its files. The files are elsewhere; agents verify them where
// they enter a tier.

import type { z } from 'zod';
import { KiB } from '../../shared/bytes.ts';
import { refuse } from '../../shared/refusal.ts';
import { newRevision, type RevisionRow, type StoredRevision } from '../../shared/registry/contract.ts';
import { digestOfFiles } from '../../shared/registry/revision.ts';
import { openBundle } from '../../shared/registry/signature-bundle.ts';
import type { Manifest } from '../../shared/registry/signature-manifest.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { afterEntry } from './after-entry.ts';
import { decideRevision } from './decide.ts';
import { revisionRowOf } from './get-model.ts';
import type { ModelContext } from './model-context.ts';
import { enrolModel } from './publish-release.ts';
import { append, readModel } from './stored-model.ts';

/** Signature bundle as sent and stored: a row of the table takes 150,000 characters. */
const MODEL_BUNDLE_BYTES = 64 * KiB;

const invalid = (rule: string) => no(refuse('signature_invalid', { rule }));

const bundleKey = (revision: string): string => `b!${revision}`;

export async function registerRevision(
  context: ModelContext,
  model: string,
  { bundle, description }: z.infer<typeof newRevision>,
): Promise<Result<RevisionRow>> {
  if (JSON.stringify(bundle).length > MODEL_BUNDLE_BYTES) return invalid('its bundle is too long');
  const opened = await openBundle(bundle, context.signers);
  if (!opened.ok) return opened;
  const { manifest, signer } = opened.value;
  const revision = revisionOf(manifest);
  if (revision === undefined) return invalid('it does not say which revision its files make');
  if (manifest.revision !== undefined && manifest.revision !== revision) {
    return invalid('its files make another revision than it says');
  }
  const enrolled = await enrolModel(context, model);
  if (!enrolled.ok) return enrolled;
  const done = await append(context, model, (known) => {
    const worker = context.signers.some(({ name, worker }) => name === signer && worker);
    const { sla, made } = manifest;
    const decided = decideRevision(known, { revision, author: signer, worker, sla, made });
    if (!decided.ok) return decided;
    const stored = { type: 'put', key: bundleKey(revision), value: { bundle, description } } as const;
    // Among several signatures, one with digests of whole files proves the revision and is kept over one that
    // only names it.
    const first = !Object.hasOwn(known.revisions, revision);
    const keeps = decided.value && (first || makesRevision(manifest));
    return ok({ draft: decided.value, answer: undefined, changes: keeps ? [stored] : [] });
  });
  if (!done.ok) return done;
  const published = await afterEntry(context, model);
  return published.ok ? ok(revisionRowOf(done.value.registry, revision)) : published;
}

/** Returns a revision with its bundle, for export. */
export async function getRevision(
  context: ModelContext,
  model: string,
  revision: string,
): Promise<Result<StoredRevision>> {
  const { registry } = await readModel(context, model);
  const signed = Object.hasOwn(registry.revisions, revision) && (await readSigned(context, model, revision));
  if (!signed) return no(refuse('revision_unknown', { model }));
  return ok({ ...revisionRowOf(registry, revision), ...signed });
}

/** Returns the signature and description of a revision. */
export async function readSigned({ rows }: Pick<ModelContext, 'rows'>, model: string, revision: string) {
  const row = await rows.read(model, bundleKey(revision));
  return row && newRevision.parse(row.value);
}

const makesRevision = ({ hash, method }: Manifest): boolean => hash === 'sha256' && method === 'files';

/**
 * Derives the revision from digests of whole files; other manifests have to name it, and the check follows
 * with the files.
 */
function revisionOf(manifest: Manifest): string | undefined {
  if (!makesRevision(manifest)) return manifest.revision;
  return digestOfFiles(manifest.pieces.map(({ file: name, digest }) => ({ name, digest })));
}
