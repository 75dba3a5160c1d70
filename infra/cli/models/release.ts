// auricle model register | revisions | evidence | alias | rollback | log
import { existsSync, writeFileSync } from 'node:fs';
import type { z } from 'zod';
import {
  aliasRow,
  liveEvidence,
  logPage,
  type ModelState,
  revisionRow,
  storedRevision,
} from '../../../shared/registry/contract.ts';
import { type Entry, STABLE } from '../../../shared/registry/registry.ts';
import { showStanding } from '../../../shared/registry/stage.ts';
import { findVersion } from '../../../shared/registry/version.ts';
import { problems } from '../../pool/model-build/problem.ts';
import { type Answer, impossible, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';
import { anyVersions, readModelVersion, toModelEntity, toModelVersion } from './azure-ml.ts';
import {
  callRegistry,
  fetchState,
  findRevision,
  type Headers,
  readBundle,
  shortOf,
  unknownModel,
  unknownRevision,
} from './registry.ts';

export type Run = (given: Arguments, headers: Headers) => Promise<Answer>;

const register: Run = async (given, headers) => {
  const [, model = '', place = ''] = given.operands;
  const bundle = readBundle(place);
  if (bundle === undefined) return wrong(`there is no signature in ${place}: sign it first`);
  if ('exit' in bundle) return bundle;
  const versions = anyVersions.safeParse(bundle.value);
  if (versions.success) return registerAll(given, headers, model, versions.data);
  const body = { bundle: bundle.value };
  const found = await callRegistry(
    { edge: given.edge, headers },
    `${encodeURIComponent(model)}/revisions`,
    revisionRow,
    {
      method: 'POST',
      body,
    },
  );
  if ('exit' in found) return found;
  const { revision, author, stage } = found.value;
  return { exit: 0, text: `${revision}\nby ${author}, stands at ${stage}`, value: found.value };
};

type Versions = z.infer<typeof anyVersions>;

/** Registers the signed versions of an export, one after the other. */
async function registerAll(given: Arguments, headers: Headers, model: string, versions: Versions): Promise<Answer> {
  const rows: z.infer<typeof revisionRow>[] = [];
  for (const { bundle, description } of versions.flatMap((one) => readModelVersion(one) ?? [])) {
    const route = `${encodeURIComponent(model)}/revisions`;
    const found = await callRegistry({ edge: given.edge, headers }, route, revisionRow, {
      method: 'POST',
      body: { bundle, description },
    });
    if ('exit' in found) return found;
    rows.push(found.value);
  }
  const without = versions.length - rows.length;
  const more = without > 0 ? `\n${without} without a signature were skipped` : '';
  return { exit: 0, text: rows.map(({ revision }) => revision).join('\n') + more, value: { revisions: rows, without } };
}

const exportVerb: Run = async (given, headers) => {
  const [, model = '', named] = given.operands;
  const state = await fetchState({ ...given, at: undefined }, headers, model);
  if ('exit' in state) return state;
  if (state.value.revisions.length === 0) return unknownModel(given, headers, model);
  if (named !== undefined) return exportOne(given, headers, state.value, named);
  const versions: ReturnType<typeof toModelVersion>[] = [];
  for (const { revision } of state.value.revisions) {
    const route = `${encodeURIComponent(model)}/revisions/${encodeURIComponent(revision)}`;
    const kept = await callRegistry({ edge: given.edge, headers }, route, storedRevision);
    if ('exit' in kept) return kept;
    versions.push(toModelVersion('auricle', model, versions.length + 1, kept.value));
  }
  return written(given, { value: versions }, `${versions.length} revisions`);
};

function written({ out, force }: Arguments, value: object, what: string): Answer {
  const text = JSON.stringify(value, undefined, 2);
  if (out === undefined) return { exit: 0, text, value };
  if (!force && existsSync(out)) return { ...wrong(`${out} exists; -f overwrites it`), exit: problems.exists.exit };
  writeFileSync(out, `${text}\n`, { flag: force ? 'w' : 'wx' });
  return { exit: 0, text: `${out}: ${what}`, value };
}

/** Exports a revision by its version or an abbreviated digest. */
async function exportOne(given: Arguments, headers: Headers, state: ModelState, named: string): Promise<Answer> {
  const digest = findVersion(state, named)?.row.revision ?? findRevision(state, named)?.revision;
  const found = digest === undefined ? undefined : findVersion(state, digest);
  if (!found) return unknownRevision(named);
  const route = `${encodeURIComponent(state.model)}/revisions/${encodeURIComponent(found.row.revision)}`;
  const kept = await callRegistry({ edge: given.edge, headers }, route, storedRevision);
  if ('exit' in kept) return kept;
  return written(given, toModelEntity(state.model, Number(found.version), kept.value), `version ${found.version}`);
}

const revisions: Run = async (given, headers) => {
  const [, model = ''] = given.operands;
  const found = await fetchState(given, headers, model);
  if ('exit' in found) return found;
  if (found.value.revisions.length === 0) return unknownModel(given, headers, model);
  const rows = found.value.revisions.flatMap(({ revision, author, since, aliases, rollout, ...at }) => [
    [shortOf(revision), new Date(since).toISOString(), showStanding(at).padEnd(14), author, aliases.join(', ')]
      .join('  ')
      .trimEnd(),
    ...(rollout ? [`              ${rollout.state}: ${rollout.reason}`] : []),
  ]);
  return { exit: 0, text: rows.join('\n'), value: found.value };
};

const evidence: Run = async (given, headers) => {
  const [, model = '', named = ''] = given.operands;
  const state = await fetchState({ ...given, at: undefined }, headers, model);
  if ('exit' in state) return state;
  const known = findRevision(state.value, named);
  if (!known) return unknownRevision(named);
  const route = `${encodeURIComponent(model)}/revisions/${encodeURIComponent(known.revision)}/evidence`;
  const found = await callRegistry({ edge: given.edge, headers }, route, liveEvidence);
  if ('exit' in found) return found;
  const { verdict, verdicts, windows, ...at } = found.value;
  const lines = [
    `${shortOf(known.revision)}  ${showStanding(at)}  ${verdict ?? 'not under way'}`,
    ...Object.entries(verdicts).map(([kind, one]) => `${kind.padEnd(14)}${one}`),
    ...windows.map(
      ({ to, streams, failed, p95 }) =>
        `${new Date(to).toISOString()}  ${streams} streams, ${failed} failed, p95 ${Math.round(p95 ?? 0)} ms for a second of sound`,
    ),
  ];
  return { exit: 0, text: lines.join('\n'), value: found.value };
};

const alias: Run = async (given, headers) => {
  const [, model = '', name = '', named = ''] = given.operands;
  const state = await fetchState(given, headers, model);
  if ('exit' in state) return state;
  const to = named === 'none' ? undefined : findRevision(state.value, named);
  if (named !== 'none' && !to) return unknownRevision(named);
  const from = state.value.aliases.find((one) => one.alias === name)?.revision;
  return move(given, headers, { model, name, from, revision: to?.revision });
};

const rollback: Run = async (given, headers) => {
  const [, model = ''] = given.operands;
  const name = given.alias ?? STABLE;
  const state = await fetchState(given, headers, model);
  if ('exit' in state) return state;
  const now = state.value.aliases.find((one) => one.alias === name);
  if (now?.before === undefined) return impossible(`the alias "${name}" has no earlier revision`);
  return move(given, headers, { model, name, from: now.revision, revision: now.before });
};

interface Move {
  readonly model: string;
  /** Name of the alias. */
  readonly name: string;
  readonly from: string | undefined;
  readonly revision: string | undefined;
}

async function move(given: Arguments, headers: Headers, { model, name, from, revision }: Move): Promise<Answer> {
  const body = { ...(from && { from }), ...(revision && { revision }), ...(given.reason && { reason: given.reason }) };
  const path = `${encodeURIComponent(model)}/aliases/${encodeURIComponent(name)}`;
  const found = await callRegistry({ edge: given.edge, headers }, path, aliasRow, { method: 'PUT', body });
  if ('exit' in found) return found;
  return { exit: 0, text: `${name}: ${shortOf(from)} → ${shortOf(found.value.revision)}`, value: found.value };
}

type Found = { readonly value: z.infer<typeof logPage> } | Answer;

const log: Run = async (given, headers) => {
  const [, model = ''] = given.operands;
  const until = given.at === undefined ? Number.POSITIVE_INFINITY : readTime(given.at);
  if (Number.isNaN(until)) return wrong(`--at ${given.at}: ISO 8601, or milliseconds since 1970`);
  const entries: Entry[] = [];
  let after: number | undefined = 0;
  while (after !== undefined) {
    const page: Found = await callRegistry(
      { edge: given.edge, headers },
      `${encodeURIComponent(model)}/transitions?after=${after}`,
      logPage,
    );
    if ('exit' in page) return page;
    const known: Entry[] = page.value.entries.filter(({ at }) => at <= until);
    entries.push(...known);
    // Times never decrease: after the first later entry there is nothing to find.
    after = known.length < page.value.entries.length ? undefined : page.value.next;
  }
  if (entries.length === 0) return unknownModel(given, headers, model);
  return { exit: 0, text: entries.map(showEntry).join('\n'), value: { entries } };
};

const readTime = (text: string): number => (/^\d{1,15}$/.test(text) ? Number(text) : Date.parse(text));

function showEntry(one: Entry): string {
  return `${String(one.seq).padStart(4)}  ${new Date(one.at).toISOString()}  ${describe(one)}`;
}

function describe(one: Entry): string {
  if (one.type === 'alias') return `${one.alias}: ${shortOf(one.from)} → ${shortOf(one.revision)}`;
  if (one.type === 'name') return `${one.name}: ${one.from ?? 'nothing'} → ${one.to ?? 'nothing'}`;
  if (one.type === 'revision') {
    const origin = one.made ? `, ${one.made.method} of ${shortOf(one.made.from)}` : '';
    return `${shortOf(one.revision)}  registered, signed by ${one.author}${origin}`;
  }
  if (one.type === 'rollout') return `${shortOf(one.failed ?? one.revision)}  ${one.state}: ${one.reason}`;
  const way = `${showStanding(one.from)} → ${showStanding(one.to)}`;
  return `${shortOf(one.revision)}  ${way}, signed by ${one.signers.join(', ')}`;
}

export const releaseVerbs: Readonly<Record<string, Run>> = {
  register,
  export: exportVerb,
  revisions,
  evidence,
  alias,
  rollback,
  log,
};
