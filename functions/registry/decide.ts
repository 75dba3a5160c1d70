// Decides the next entry of a model's log. Each function returns an entry or a refusal; the writer ensures
// that no other entry is written in between.
import { refuse } from '../../shared/refusal.ts';
import { type Evidence, underPromise } from '../../shared/registry/evidence.ts';
import {
  applyEntry,
  authorsOf,
  type EntryDraft,
  placeEntry,
  type Registry,
  STABLE,
} from '../../shared/registry/registry.ts';
import { type Derivation, heldBack } from '../../shared/registry/rollout.ts';
import { type Sla, strictest } from '../../shared/registry/sla.ts';
import { FIRST, isSame, moveOf, showStanding } from '../../shared/registry/stage.ts';
import type { GateStatement } from '../../shared/registry/statement.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { decideMiss, decideTakeover } from './decide-rollout.ts';
import { FUNCTIONS, openGate, type TransitionContext } from './gate.ts';

/** Revisions of a model: the facts of all of them are one row of the table. */
export const MODEL_REVISIONS_MAX = 250;
/** Revisions in that row, which takes 150,000 with 32 aliases: long promises fill it before 250 revisions. */
const MODEL_HEAD_CHARACTERS = 135_000;
/** Extra size in that row of a revision that misses its promise: a reason and its outcome. */
const MODEL_ROLLOUT_CHARACTERS = 700;
/** Aliases of a model, all in the row of its revisions. */
export const MODEL_ALIASES_MAX = 32;

/** Facts about a revision from the signature of its files. */
export interface SignedRevision {
  readonly revision: string;
  readonly author: string;
  /** The author is a machine (`SignerKey.worker`). */
  readonly worker?: boolean | undefined;
  readonly sla?: Sla | undefined;
  readonly made?: Derivation | undefined;
}

/** Decides a registration. `undefined`: the same author has registered the revision before. */
export function decideRevision(known: Registry, signed: SignedRevision): Result<EntryDraft | undefined> {
  const { revision, author, made } = signed;
  const there = known.revisions[revision];
  if (there?.author === author || there?.authors?.includes(author)) return ok(undefined);
  if (there) return decideAuthor(known, there, signed);
  if (Object.keys(known.revisions).length >= MODEL_REVISIONS_MAX) {
    return no(closed(`a model has at most ${MODEL_REVISIONS_MAX} revisions`));
  }
  const problem = lineageProblem(known, signed);
  if (problem !== undefined) return no(closed(problem));
  // A derived revision inherits the promise of its source.
  const sla = made ? known.revisions[made.from]?.sla : signed.sla;
  return draftWithin(known, { type: 'revision', revision, author, ...(sla && { sla }), ...(made && { made }) });
}

/**
 * Decides a registration by a further author. The first author has no privilege: a digest can be registered
 * without the files. The strictest promise of all authors holds.
 */
function decideAuthor(
  known: Registry,
  there: Registry['revisions'][string],
  { revision, author, worker, sla, made }: SignedRevision,
): Result<EntryDraft | undefined> {
  if (worker && !made) return no(closed(MAKES_OF_SOMETHING));
  if (made?.from !== there.made?.from || made?.method !== there.made?.method) {
    return no(closed('another author has signed the same files, and another origin'));
  }
  if (!isSame(there.standing, FIRST)) {
    return no(closed(`another author has signed the same files, and they stand at ${showStanding(there.standing)}`));
  }
  const promised = made ? undefined : strictest(there.sla, sla);
  return draftWithin(known, { type: 'revision', revision, author, ...(promised && { sla: promised }) });
}

/**
 * Refuses a revision that would leave no capacity in the model's single row for later moves and rollbacks.
 */
function draftWithin(known: Registry, draft: EntryDraft): Result<EntryDraft> {
  const { revisions } = applyEntry(known, placeEntry(known, draft, known.at));
  const mayMiss = Object.values(revisions).filter(({ sla, made }) => sla || made).length;
  const room = JSON.stringify(revisions).length + mayMiss * MODEL_ROLLOUT_CHARACTERS;
  return room > MODEL_HEAD_CHARACTERS
    ? no(closed('what is known of all revisions of the model fills its row: the name is used up'))
    : ok(draft);
}

function lineageProblem({ revisions }: Registry, { worker, sla, made }: SignedRevision): string | undefined {
  if (!made) return worker ? MAKES_OF_SOMETHING : undefined;
  const source = revisions[made.from];
  if (!source) return 'what it is made of is not known here';
  if (sla && JSON.stringify(sla) !== JSON.stringify(source.sla)) {
    return 'it promises something else than what it is made of';
  }
  const twin = Object.values(revisions).some((one) => one.made?.from === made.from && one.made.method === made.method);
  return worker && twin ? `the method "${made.method}" was tried already` : undefined;
}

const MAKES_OF_SOMETHING = 'its author makes nothing but what is made of something';

const closed = (rule: string) => refuse('gate_closed', { rule });

/**
 * Decides a stage transition. A number is the count of people who must still sign. The entry may be a
 * missed promise (`rollout`).
 */
export function decideTransition(
  known: Registry,
  sent: GateStatement,
  context: TransitionContext,
): Result<EntryDraft | number> {
  const { signers, workers = [], now } = context;
  const { revision, from, to, id } = sent;
  const found = known.revisions[revision];
  if (!found || sent.model !== known.model) return no(refuse('revision_unknown', { model: known.model }));
  const stands = showStanding(found.standing);
  if (stands !== showStanding(from)) return no(refuse('stage_passed', { standing: stands }));
  // Evidence that was signed for an earlier visit to this stage does not count.
  if (sent.at < found.since) return no(closed('it was written before the revision came to where it stands'));
  if (isSame(from, to)) return decideTakeover(known, sent, { people: signers, workers }, now);
  const other = sent.evidence.find((one) => 'facts' in one && ![undefined, revision].includes(revisionIn(one.facts)));
  if (other) return no(closed(`the evidence "${other.kind}" is of another revision`));
  const statement = { ...sent, evidence: sent.evidence.map((one) => underPromise(one, found.sla)) };
  const alias = Object.entries(known.aliases).find(([, { revision: named }]) => named === revision)?.[0];
  if (alias === STABLE && to.stage !== 'full') return no(closed(`the alias "${STABLE}" names it`));
  if (alias !== undefined && to.stage === 'retired') return no(closed(`the alias "${alias}" names it`));
  const target = to.stage === 'retired' && signers.every((name) => name === FUNCTIONS) && targetOf(known, revision);
  if (target) return no(closed(`the alias "${target}" would roll back to it: a person has to sign that`));
  const move = moveOf(from, to);
  const forward = move === 'advance' || move === 'step-up';
  if (forward && context.filesMissing) return no(refuse('model_files_missing', { model: known.model }));
  const held = heldBack(known.revisions, revision);
  if (forward && held !== undefined) return no(refuse('rollout_held', { rule: held }));
  // A withdrawal to the first stage may carry the same findings.
  const judged = forward || (move === 'withdraw' && isSame(to, FIRST));
  const missed = judged && held === undefined ? decideMiss(known, statement, context) : undefined;
  if (missed) return ok(missed);
  const rival = Object.entries(known.revisions).find(
    ([digest, { standing }]) => digest !== revision && standing.stage === 'canary',
  );
  if (to.stage === 'canary' && from.stage !== 'canary' && rival) return no(closed('another revision is the canary'));
  if (to.stage === 'grey' && found.sla?.memoryBytes !== undefined && !statement.evidence.some(isMemory)) {
    return no(closed('evidence of the kind "memory" is missing'));
  }
  const open = openGate(statement, authorsOf(known.revisions, revision), context);
  if (!open.ok) return open;
  return ok(open.value > 0 ? open.value : { type: 'stage', revision, from, to, statement: id, signers: [...signers] });
}

/**
 * Returns the alias that would roll back to the revision: one whose current revision came to its stage later.
 */
const targetOf = ({ aliases, revisions }: Registry, revision: string): string | undefined =>
  Object.entries(aliases).find(
    ([, named]) =>
      named.before === revision &&
      (revisions[revision]?.since ?? 0) <= (revisions[named.revision]?.since ?? Number.POSITIVE_INFINITY),
  )?.[0];

const isMemory = ({ kind }: Evidence): boolean => kind === 'memory';

export interface AliasMove {
  readonly alias: string;
  /** Revision that the caller believes the alias names now. */
  readonly from?: string | undefined;
  /** Absent: the alias is removed. */
  readonly revision?: string | undefined;
  readonly reason?: string | undefined;
}

/** Decides an alias move. `undefined`: the alias names that revision already. */
export function decideAlias(
  known: Registry,
  { alias, from, revision, reason }: AliasMove,
): Result<EntryDraft | undefined> {
  const named = Object.hasOwn(known.aliases, alias) ? known.aliases[alias]?.revision : undefined;
  if (named === revision) return ok(undefined);
  if (named !== from) return no(refuse('alias_moved', { alias, revision: named ?? 'nothing' }));
  if (revision === undefined) {
    return alias === STABLE
      ? no(closed('the stable alias can be moved, not removed'))
      : ok({ type: 'alias', alias, from: named });
  }
  const found = known.revisions[revision];
  if (!found) return no(refuse('revision_unknown', { model: known.model }));
  const { stage } = found.standing;
  if (alias === STABLE && stage !== 'full') return no(closed(`a revision in the stage ${stage} cannot be stable`));
  if (stage === 'retired') return no(closed('the revision is retired'));
  if (named === undefined && Object.keys(known.aliases).length >= MODEL_ALIASES_MAX) {
    return no(closed(`a model has at most ${MODEL_ALIASES_MAX} aliases`));
  }
  return ok({
    type: 'alias',
    alias,
    revision,
    ...(named !== undefined && { from: named }),
    ...(reason !== undefined && { reason }),
  });
}

/** Returns the revision that evidence was measured on, where it says so. */
const revisionIn = ({ revision }: Readonly<Record<string, unknown>>): string | undefined =>
  typeof revision === 'string' ? revision : undefined;
