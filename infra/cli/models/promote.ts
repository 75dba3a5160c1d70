// auricle model promote | approve
import { z } from 'zod';
import { storedTransition, transitionRow } from '../../../shared/registry/contract.ts';
import { type Evidence, evidence } from '../../../shared/registry/evidence.ts';
import { signPayload } from '../../../shared/registry/signature-envelope.ts';
import type { SigningKey } from '../../../shared/registry/signature-key.ts';
import { canaryShares, type Standing, showStanding, stages, standing } from '../../../shared/registry/stage.ts';
import { readStatement, statementId, writeStatement } from '../../../shared/registry/statement.ts';
import { type Answer, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';
import { keyFileOf, NO_KEY, noKeyIn, readSigningKey } from './key.ts';
import {
  callRegistry,
  fetchState,
  findRevision,
  type Headers,
  readJsonFile,
  shortOf,
  unknownRevision,
} from './registry.ts';

interface NamedRevision {
  readonly model: string;
  /** The revision, or the transition. */
  readonly named: string;
  readonly key: SigningKey;
}

async function readNamed(given: Arguments): Promise<NamedRevision | Answer> {
  const [, model = '', named = ''] = given.operands;
  const file = keyFileOf(given);
  if (file === undefined) return wrong(NO_KEY);
  const key = await readSigningKey(file);
  return key ? { model, named, key } : wrong(noKeyIn(file));
}

/** The revision that is named, and where it stands. */
async function findNamed(
  given: Arguments,
  headers: Headers,
  { model, named }: NamedRevision,
): Promise<{ readonly revision: string; readonly at: Standing } | Answer> {
  const state = await fetchState(given, headers, model);
  if ('exit' in state) return state;
  const found = findRevision(state.value, named);
  if (!found) return unknownRevision(named);
  const { revision, stage, share } = found;
  return { revision, at: { stage, ...(share !== undefined && { share }) } };
}

/** The stage behind the one where it stands; shares of the canary one after the other. */
function nextOf({ stage, share }: Standing): Standing | undefined {
  if (stage === 'develop-verify') return { stage: 'grey' };
  const next = share === undefined ? (stage === 'grey' ? 0 : -1) : canaryShares.indexOf(share) + 1;
  if (next < 0) return undefined;
  const more = canaryShares[next];
  return more === undefined ? { stage: 'full' } : { stage: 'canary', share: more };
}

/** `grey`, `canary` for its first share, `25%`. */
function readStanding(text: string): Standing | undefined {
  const percent = /^(\d{1,2})\s?%$/.exec(text)?.[1];
  if (percent !== undefined) return standing.safeParse({ stage: 'canary', share: Number(percent) / 100 }).data;
  return standing.safeParse(text === 'canary' ? { stage: text, share: canaryShares[0] } : { stage: text }).data;
}

export async function promote(given: Arguments, headers: Headers): Promise<Answer> {
  const request = await readNamed(given);
  if ('exit' in request) return request;
  const { model, key } = request;
  const found = await findNamed(given, headers, request);
  if ('exit' in found) return found;
  const { revision, at: from } = found;
  const to = given.to === undefined ? nextOf(from) : readStanding(given.to);
  if (!to)
    return wrong(
      `--to must be one of ${stages.join(', ')} or ${canaryShares.map((one) => `${one * 100}%`).join(', ')}`,
    );
  const shown = given.evidence === undefined ? { value: [] } : readEvidence(given.evidence);
  if ('exit' in shown) return shown;
  const reason = given.reason === undefined ? {} : { reason: given.reason };
  const statement = { model, revision, from, to, at: Date.now(), evidence: shown.value, ...reason };
  return send(given, headers, { model, key }, writeStatement(statement));
}

/** Problems that are shown of a file: the others are of the same kind. */
const SHOWN = 3;

function readEvidence(file: string): { readonly value: Evidence[] } | Answer {
  const read = readJsonFile(file);
  if ('exit' in read) return read;
  const parsed = z.array(evidence).safeParse(read.value);
  if (parsed.success) return { value: parsed.data };
  const { issues } = parsed.error;
  const lines = issues.slice(0, SHOWN).map(({ path, message }) => `  ${path.join('.') || 'all of it'}: ${message}`);
  const more = issues.length > SHOWN ? [`  and ${issues.length - SHOWN} more`] : [];
  return wrong([`${file} is not evidence:`, ...lines, ...more].join('\n'));
}

/** A statement that moves nothing: a person answers for what goes on now. */
export async function takeover(given: Arguments, headers: Headers): Promise<Answer> {
  const { reason } = given;
  if (!reason) return wrong('why? --reason WHY');
  const request = await readNamed(given);
  if ('exit' in request) return request;
  const { model, key } = request;
  const found = await findNamed(given, headers, request);
  if ('exit' in found) return found;
  const { revision, at } = found;
  const statement = { model, revision, from: at, to: at, at: Date.now(), evidence: [], reason };
  return send(given, headers, { model, key }, writeStatement(statement));
}

export async function approve(given: Arguments, headers: Headers): Promise<Answer> {
  const request = await readNamed(given);
  if ('exit' in request) return request;
  const { model, named: id, key } = request;
  const kept = await callRegistry(
    { edge: given.edge, headers },
    `${encodeURIComponent(model)}/transitions/${encodeURIComponent(id)}`,
    storedTransition,
  );
  if ('exit' in kept) return kept;
  const payload = new Uint8Array(Buffer.from(kept.value.envelope.payload, 'base64'));
  // The signature covers the requested transition, not a substitute in the answer.
  if (statementId(payload) !== id || readStatement(payload)?.model !== model) {
    return wrong(`the edge did not answer with the transition ${id} of ${model}`);
  }
  return send(given, headers, { model, key }, payload);
}

/** Signs a transition and sends it. */
async function send(
  given: Arguments,
  headers: Headers,
  { model, key }: Pick<NamedRevision, 'model' | 'key'>,
  payload: Uint8Array,
): Promise<Answer> {
  const body = { envelope: await signPayload(payload, key) };
  const found = await callRegistry(
    { edge: given.edge, headers },
    `${encodeURIComponent(model)}/transitions`,
    transitionRow,
    {
      method: 'POST',
      body,
    },
  );
  if ('exit' in found) return found;
  const { id, revision, from, to, signers, missing } = found.value;
  const way = `${shortOf(revision)}: ${showStanding(from)} → ${showStanding(to)}, signed by ${signers.join(', ')}`;
  const more = `\n${missing} more must sign: auricle model approve ${model} ${id}`;
  return { exit: 0, text: `${way}${missing > 0 ? more : ''}`, value: found.value };
}
