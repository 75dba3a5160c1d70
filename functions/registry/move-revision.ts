// Stage moves of a revision, by a statement with enough signatures. Until then the statement waits here for
// further signers.
import { fromBase64 } from '../../shared/base64.ts';
import { KiB } from '../../shared/bytes.ts';
import { refuse } from '../../shared/refusal.ts';
import { type StoredTransition, storedTransition, type TransitionRow } from '../../shared/registry/contract.ts';
import type { Registry } from '../../shared/registry/registry.ts';
import { type Envelope, MODEL_SIGNATURES_MAX, openEnvelope } from '../../shared/registry/signature-envelope.ts';
import { isSame, moveOf } from '../../shared/registry/stage.ts';
import { type GateStatement, readStatement } from '../../shared/registry/statement.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Change, Row } from '../store/rows.ts';
import { afterEntry } from './after-entry.ts';
import { decideTransition } from './decide.ts';
import { readLiveEvidence } from './get-live.ts';
import type { ModelContext } from './model-context.ts';
import { hasFiles } from './model-files.ts';
import { requireOnline } from './require-online.ts';
import { append, type Decided } from './stored-model.ts';

/** Signed statement as sent and stored, in base64: a row of the table takes 150,000 characters. */
const MODEL_STATEMENT_BYTES = 80 * KiB;

const statementKey = (id: string): string => `s!${id}`;
const invalid = (rule: string) => no(refuse('signature_invalid', { rule }));

/** Applies a signed statement. A repeat, also with another signature, is the same transition. */
export async function moveRevision(
  context: ModelContext,
  model: string,
  sent: Envelope,
): Promise<Result<TransitionRow>> {
  if (JSON.stringify(sent).length > MODEL_STATEMENT_BYTES) return invalid('it is too long');
  const payload = fromBase64(sent.payload);
  const statement = payload && readStatement(payload);
  if (!statement || statement.model !== model) return invalid('it is no statement about a revision of this model');
  const done = await append(context, model, async (known) => {
    const row = await context.rows.read(model, statementKey(statement.id));
    return decide(context, known, { statement, sent, row });
  });
  if (!done.ok) return done;
  const published = await afterEntry(context, model);
  if (!published.ok) return published;
  const { answer } = done.value;
  return answer.missed === undefined ? ok(answer) : no(refuse('sla_missed', { rule: answer.missed }));
}

interface SentStatement {
  readonly statement: GateStatement;
  readonly sent: Envelope;
  /** The stored statement of that id. */
  readonly row: Row | undefined;
}

async function decide(
  context: ModelContext,
  known: Registry,
  { statement, sent, row }: SentStatement,
): Promise<Result<Decided<TransitionRow>>> {
  const stored = row && storedTransition.parse(row.value);
  // The statement has moved the revision already: the client repeats after a lost answer.
  if (stored?.seq !== undefined) return ok({ draft: undefined, answer: rowOf(stored) });
  const opened = await openEnvelope(stored ? join(stored.envelope, sent) : sent, context.signers);
  if (!opened) return invalid('one of its signatures is wrong, or by an unknown key');
  const machines = new Set(context.signers.filter(({ worker }) => worker).map(({ name }) => name));
  const people = opened.signers.filter((name) => !machines.has(name));
  const workers = opened.signers.filter((name) => machines.has(name));
  const live = await readLiveEvidence(context, known, statement.revision);
  const filesMissing = !(await hasFiles(context, known.model, statement.revision));
  const evaluation = { signers: people, workers, now: context.now(), live, filesMissing };
  const decided = decideTransition(known, statement, evaluation);
  if (!decided.ok) return decided;
  const draft = typeof decided.value === 'number' ? undefined : decided.value;
  if (draft?.type === 'stage' && ['advance', 'step-up'].includes(moveOf(draft.from, draft.to) ?? '')) {
    const online = await requireOnline(context, known.model, draft.revision);
    if (!online.ok) return online;
  }
  // A machine's signature alone opens no transition.
  if (!draft && people.length === 0 && !isSame(statement.from, statement.to))
    return invalid('no person with a vote has signed it');
  const { id, revision, from, to } = statement;
  const answer: TransitionRow = {
    ...{ id, revision, from, to },
    signers: draft?.type === 'rollout' ? draft.signers : people,
    missing: typeof decided.value === 'number' ? decided.value : 0,
    ...(draft && { seq: known.seq + 1 }),
    // A withdrawal succeeds even when it records a miss; only an advance reports it.
    ...(draft?.type === 'rollout' && to.stage !== 'develop-verify' && { missed: draft.reason }),
  };
  const signatures = opened.envelope.signatures.slice(0, MODEL_SIGNATURES_MAX);
  const envelope = { ...opened.envelope, signatures };
  const change = putOn(row, statementKey(id), { ...answer, envelope });
  return ok({ draft, answer, changes: [change] });
}

const putOn = (row: Row | undefined, key: string, value: StoredTransition): Change =>
  row ? { type: 'replace', key, value, version: row.version } : { type: 'insert', key, value };

/** Joins the signatures. Both sign the same bytes, since their ids are equal. */
function join(stored: Envelope, sent: Envelope): Envelope {
  const known = new Set(stored.signatures.map(({ sig }) => sig));
  const more = sent.signatures.filter(({ sig }) => !known.has(sig));
  return { ...stored, signatures: [...stored.signatures, ...more] };
}

const rowOf = ({ envelope: _, ...row }: StoredTransition): TransitionRow => row;

/** Returns a transition with its envelope, for further signers. */
export async function getTransition(
  context: ModelContext,
  model: string,
  id: string,
): Promise<Result<StoredTransition>> {
  const row = await context.rows.read(model, statementKey(id));
  return row ? ok(storedTransition.parse(row.value)) : no(refuse('transition_unknown'));
}
