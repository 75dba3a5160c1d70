// auricle model quantise --watch: whoever has the files of revisions makes smaller ones of those that missed what was promised
// of them. What is wanted stands in the log of the model, so that nothing is lost with a machine, and nothing made twice.
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { z } from 'zod';
import { limits } from '../../../shared/limits.ts';
import { keptRevision, type RevisionRow, revisionRow, transitionRow } from '../../../shared/model/contract.ts';
import { digestOfFiles } from '../../../shared/model/revision.ts';
import type { Method } from '../../../shared/model/rollout.ts';
import { makeBundle } from '../../../shared/model/signature/bundle.ts';
import { readPayload, signPayload } from '../../../shared/model/signature/envelope.ts';
import { algorithmOf, digestOf, type SigningKey } from '../../../shared/model/signature/key.ts';
import { type Manifest, readManifest, writeManifest } from '../../../shared/model/signature/manifest.ts';
import { verifyFiles } from '../../../shared/model/signature/verify-files.ts';
import { writeStatement } from '../../../shared/model/statement.ts';
import { ok } from '../../../shared/result.ts';
import type { Made } from '../../pool/model-build/problem.ts';
import { type QuantisedRevision, quantiseRevision } from '../../pool/model-build/quantise/quantise-revision.ts';
import type { Answer } from '../answer.ts';
import { digestFolder, openFolder, signatureOf } from './files.ts';
import { ask, askState, type Headers, shortOf } from './registry.ts';

export interface Watch {
  readonly edge: string;
  readonly headers: Headers;
  readonly models: readonly string[];
  /** Where repositories lie. */
  readonly repositories: readonly string[];
  /** Where those that are made go, a folder each. */
  readonly out: string;
  readonly key: SigningKey;
  /** Without recordings nothing is made with the method "static". */
  readonly calibrate?: { readonly folder: string; readonly count?: number };
  /** Ends when nothing is wanted. */
  readonly once: boolean;
  readonly say: (line: string) => void;
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

/** Until it is stopped, or with `once` until nothing is wanted that can be made here. */
export async function watchRevisions(watch: Watch): Promise<Answer> {
  const all: MadeRevision[] = [];
  for (;;) {
    let done = 0;
    for (const model of watch.models) {
      const made = await makeWanted(watch, model);
      if ('exit' in made) {
        if (watch.once) return made;
        watch.say(made.text);
        continue;
      }
      all.push(...made);
      done += made.length;
    }
    if (watch.once && done === 0) break;
    if (done === 0) await pause(limits.modelWatchMs.value);
  }
  return { exit: 0, text: all.length > 0 ? `${all.length} made` : 'nothing is wanted', value: { made: all } };
}

async function makeWanted(watch: Watch, model: string): Promise<MadeRevision[] | Answer> {
  const state = await askState({ edge: watch.edge, at: undefined }, watch.headers, model);
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
  if (method === 'static' && !watch.calibrate) return void watch.say(`${named}: wants --calibrate`);
  const kept = await askModel(watch, `${model}/revisions/${from}`, keptRevision);
  if ('exit' in kept) return kept;
  const manifest = readManifest(readPayload(Buffer.from(kept.value.bundle.dsseEnvelope.payload, 'base64')));
  // Agents name what they serve by its place in a repository.
  if (manifest?.pieces.some(({ file }) => !file.includes('/'))) {
    return giveUp(watch, row, { model, from, method }, 'it was signed as a folder, and not as parts of a repository');
  }
  const source = manifest && (await findSource(watch.repositories, manifest, from));
  if (!source) return void watch.say(`${named}: its files are in none of these folders`);
  const folder = path.join(watch.out, `${model}-${shortOf(from)}-${method}`);
  const { calibrate } = watch;
  const made: Made<QuantisedRevision> = existsSync(folder)
    ? ok({ networks: [] }) // Made before, and not registered: the same files give the same bytes.
    : await quantiseRevision({ ...source, out: folder, ...(method === 'static' && calibrate && { calibrate }) });
  const facts = { model, from, method };
  if (!made.ok) return giveUp(watch, row, facts, `${made.refusal.kind}: ${made.refusal.text}`);
  const samples = Math.max(0, ...made.value.networks.map((one) => one.samples));
  const parameters = { weights: 'int8', softmax: 'fp32', ...(samples > 0 && { samples }) };
  const registered = await register(watch, model, folder, source.parts, { from, method, parameters });
  if ('exit' in registered) return registered;
  const { revision } = registered.value;
  watch.say(`${named}: ${revision}, in ${folder}`);
  return { ...facts, revision, folder };
}

const askModel = <T extends z.ZodType>({ edge, headers }: Watch, place: string, schema: T, body?: unknown) =>
  ask({ edge }, headers, place, schema, body === undefined ? undefined : { method: 'POST', body });

/** Where the files lie that were signed: they are read before they are believed. */
async function findSource(repositories: readonly string[], manifest: Manifest, revision: string) {
  const named = new Set(manifest.pieces.map(({ file }) => file.split('/')[0] as string));
  // The one that gives the revision its name first, as whoever signed has named it.
  const parts = [...named].sort((one, other) => Number(other === manifest.name) - Number(one === manifest.name));
  for (const repository of repositories) {
    if (!parts.every((part) => existsSync(path.join(repository, part)))) continue;
    const found = await verifyFiles(manifest, openFolder(repository, parts));
    if (found.ok && found.value.revision === revision) return { repository, parts };
  }
  return undefined;
}

type Lineage = NonNullable<Manifest['made']>;

async function register(watch: Watch, model: string, folder: string, parts: readonly string[], made: Lineage) {
  const algorithm = algorithmOf(watch.key.publicKey) ?? 'ecdsa-p256';
  const hash = digestOf[algorithm];
  const digests = await digestFolder(folder, parts);
  const revision = digestOfFiles(digests.map(({ name, sha256 }) => ({ name, digest: sha256 })));
  const listed = digests.map((one) => ({ name: one.name, digest: one[hash] }));
  const payload = writeManifest(parts[0] ?? model, hash, listed, revision, { made });
  const bundle = makeBundle(await signPayload(payload, watch.key));
  writeFileSync(signatureOf(folder, parts, hash), JSON.stringify(bundle));
  return askModel(watch, `${encodeURIComponent(model)}/revisions`, revisionRow, { bundle });
}

/** Said to whoever waits, so that nobody waits for what never comes. */
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
  const told = await askModel(watch, `${encodeURIComponent(model)}/transitions`, transitionRow, body);
  if ('exit' in told) return told;
  watch.say(`${model} ${shortOf(from)}, ${method}: ${problem}`);
  return { ...wanted, problem };
}
