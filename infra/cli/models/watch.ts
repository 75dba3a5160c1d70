// auricle model quantise --watch: quantises revisions that missed their SLA, on a machine that has their files. The log of
// the model holds the requests, so a lost machine loses none, and none is served twice.
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RevisionRow, storedRevision, transitionRow } from '../../../shared/registry/contract.ts';
import { digestOfFiles } from '../../../shared/registry/revision.ts';
import type { Method } from '../../../shared/registry/rollout.ts';
import { makeBundle } from '../../../shared/registry/signature-bundle.ts';
import { readPayload, signPayload } from '../../../shared/registry/signature-envelope.ts';
import { algorithmOf, digestOf, type SigningKey } from '../../../shared/registry/signature-key.ts';
import { type Manifest, readManifest, writeManifest } from '../../../shared/registry/signature-manifest.ts';
import { writeStatement } from '../../../shared/registry/statement.ts';
import { verifyFiles } from '../../../shared/registry/verify-files.ts';
import { ok } from '../../../shared/result.ts';
import type { BuildResult } from '../../pool/model-build/problem.ts';
import { type QuantisedRevision, quantiseRevision } from '../../pool/model-build/quantise/quantise-revision.ts';
import type { Answer } from '../answer.ts';
import { digestFolder, openFolder, signatureOf } from './files.ts';
import { pushRevision } from './push.ts';
import { callRegistry, fetchState, type Headers, shortOf } from './registry.ts';

/** Pause between two polls for revisions to build: a build takes seconds. */
const MODEL_WATCH_MS = 2_000;

export interface Watch {
  readonly edge: string;
  readonly headers: Headers;
  readonly models: readonly string[];
  /** Repositories with the files of revisions. */
  readonly repositories: readonly string[];
  /** Folder of the made revisions, one folder each. */
  readonly out: string;
  readonly key: SigningKey;
  /** Without recordings nothing is made with the method "static". */
  readonly calibrate?: { readonly folder: string; readonly count?: number };
  /** Ends when nothing is wanted. */
  readonly once: boolean;
  readonly print: (line: string) => void;
}

export interface MadeRevision {
  readonly model: string;
  readonly from: string;
  readonly method: Method;
  /** Absent where none can be made. */
  readonly revision?: string;
  readonly folder?: string;
  readonly problem?: string;
}

/** Makes requested revisions until stopped, or with `once` until none is left. */
export async function watchRevisions(watch: Watch): Promise<Answer> {
  const all: MadeRevision[] = [];
  for (;;) {
    let done = 0;
    for (const model of watch.models) {
      const made = await makeWanted(watch, model);
      if ('exit' in made) {
        if (watch.once) return made;
        watch.print(made.text);
        continue;
      }
      all.push(...made);
      done += made.length;
    }
    if (watch.once && done === 0) break;
    if (done === 0) await sleep(MODEL_WATCH_MS);
  }
  return { exit: 0, text: all.length > 0 ? `${all.length} made` : 'nothing is wanted', value: { made: all } };
}

async function makeWanted(watch: Watch, model: string): Promise<MadeRevision[] | Answer> {
  const state = await fetchState({ edge: watch.edge, at: undefined }, watch.headers, model);
  if ('exit' in state) return state;
  const all: MadeRevision[] = [];
  for (const row of state.value.revisions) {
    if (row.rollout?.state !== 'making' || row.rollout.method === undefined) continue;
    const made = await makeOne(watch, model, row, row.rollout.method);
    if (made && 'exit' in made) return made;
    if (made) all.push(made);
  }
  return all;
}

async function makeOne(
  watch: Watch,
  model: string,
  row: RevisionRow,
  method: Method,
): Promise<MadeRevision | Answer | undefined> {
  const { revision: from } = row;
  const named = `${model} ${shortOf(from)}, ${method}`;
  if (method === 'static' && !watch.calibrate) return void watch.print(`${named}: wants --calibrate`);
  const kept = await callRegistry(watch, `${model}/revisions/${from}`, storedRevision);
  if ('exit' in kept) return kept;
  const manifest = readManifest(readPayload(Buffer.from(kept.value.bundle.dsseEnvelope.payload, 'base64')));
  // Agents name what they serve by its place in a repository.
  if (manifest?.pieces.some(({ file }) => !file.includes('/'))) {
    return giveUp(watch, row, { model, from, method }, 'it was signed as a folder, and not as parts of a repository');
  }
  const source = manifest && (await findSource(watch.repositories, manifest, from));
  if (!source) return void watch.print(`${named}: its files are in none of these folders`);
  const folder = path.join(watch.out, `${model}-${shortOf(from)}-${method}`);
  const { calibrate } = watch;
  const made: BuildResult<QuantisedRevision> = existsSync(folder)
    ? ok({ networks: [] }) // Made before, and not registered: the same files give the same bytes.
    : await quantiseRevision({ ...source, out: folder, ...(method === 'static' && calibrate && { calibrate }) });
  const facts = { model, from, method };
  if (!made.ok) return giveUp(watch, row, facts, `${made.refusal.kind}: ${made.refusal.text}`);
  const samples = Math.max(0, ...made.value.networks.map((one) => one.samples));
  const parameters = { weights: 'int8', softmax: 'fp32', ...(samples > 0 && { samples }) };
  const registered = await register(watch, { model, folder, parts: source.parts, made: { from, method, parameters } });
  if ('exit' in registered) return registered;
  const { revision } = registered.value;
  watch.print(`${named}: ${revision}, in ${folder}`);
  return { ...facts, revision, folder };
}

/** Returns the repository whose files match the signature. */
async function findSource(repositories: readonly string[], manifest: Manifest, revision: string) {
  const named = new Set(manifest.pieces.map(({ file }) => file.split('/')[0] as string));
  // The part that names the revision comes first, as the signer ordered them.
  const parts = [...named].sort((one, other) => Number(other === manifest.name) - Number(one === manifest.name));
  for (const repository of repositories) {
    if (!parts.every((part) => existsSync(path.join(repository, part)))) continue;
    const found = await verifyFiles(manifest, openFolder(repository, parts));
    if (found.ok && found.value.revision === revision) return { repository, parts };
  }
  return undefined;
}

interface MadeFiles {
  readonly model: string;
  readonly folder: string;
  readonly parts: readonly string[];
  readonly made: NonNullable<Manifest['made']>;
}

async function register(watch: Watch, { model, folder, parts, made }: MadeFiles) {
  const algorithm = algorithmOf(watch.key.publicKey) ?? 'ecdsa-p256';
  const hash = digestOf[algorithm];
  const digests = await digestFolder(folder, parts);
  const revision = digestOfFiles(digests.map(({ name, sha256 }) => ({ name, digest: sha256 })));
  const listed = digests.map((one) => ({ name: one.name, digest: one[hash] }));
  const payload = writeManifest({ name: parts[0] ?? model, hash, files: listed, revision, made });
  const bundle = makeBundle(await signPayload(payload, watch.key));
  writeFileSync(signatureOf(folder, parts, hash), JSON.stringify(bundle));
  return pushRevision(watch, { model, folder, parts, bundle });
}

/** Records that a revision cannot be made, which ends the request. */
async function giveUp(
  watch: Watch,
  row: RevisionRow,
  wanted: Pick<MadeRevision, 'model' | 'from' | 'method'>,
  problem: string,
): Promise<MadeRevision | Answer> {
  const { model, from, method } = wanted;
  const stands = { stage: row.stage, ...(row.share !== undefined && { share: row.share }) };
  const evidence = [
    {
      kind: 'quantise' as const,
      tool: 'auricle',
      method,
      verdict: 'FAIL' as const,
      facts: { problem: problem.slice(0, 512) },
    },
  ];
  const at = Math.max(Date.now(), row.since);
  const payload = writeStatement({ model, revision: from, from: stands, to: stands, at, evidence });
  const body = { envelope: await signPayload(payload, watch.key) };
  const listed = await callRegistry(watch, `${encodeURIComponent(model)}/transitions`, transitionRow, {
    method: 'POST',
    body,
  });
  if ('exit' in listed) return listed;
  watch.print(`${model} ${shortOf(from)}, ${method}: ${problem}`);
  return { ...wanted, problem };
}
