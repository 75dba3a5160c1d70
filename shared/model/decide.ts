// What may be written into the log of a model next. Each answers with an entry, or with why not; the writer makes sure that
// nothing else was written in between.
import { limits } from '../limits.ts';
import { refuse } from '../refusal.ts';
import { no, ok, type Result } from '../result.ts';
import { openGate } from './gate.ts';
import { type EntryDraft, type Registry, STABLE } from './registry.ts';
import { showStanding } from './stage.ts';
import type { GateStatement } from './statement.ts';

/** `undefined`: it is there already, by the same author. */
export function decideRevision(known: Registry, revision: string, author: string): Result<EntryDraft | undefined> {
  const there = known.revisions[revision];
  if (there) return there.author === author ? ok(undefined) : no(closed('another author has signed the same files'));
  if (Object.keys(known.revisions).length >= limits.modelRevisions.value) {
    return no(closed(`a model has at most ${limits.modelRevisions.value} revisions`));
  }
  return ok({ type: 'revision', revision, author });
}

const closed = (rule: string) => refuse('gate_closed', { rule });

/** A number: so many more people must sign. */
export function decideTransition(
  known: Registry,
  statement: GateStatement,
  signers: readonly string[],
  now: number,
): Result<EntryDraft | number> {
  const { revision, from, to, id } = statement;
  const found = known.revisions[revision];
  if (!found || statement.model !== known.model) return no(refuse('revision_unknown', { model: known.model }));
  const stands = showStanding(found.standing);
  if (stands !== showStanding(from)) return no(refuse('stage_passed', { standing: stands }));
  // What was signed for an earlier visit to this stage is no evidence for this one.
  if (statement.at < found.since) return no(closed('it was written before the revision came to where it stands'));
  const rival = Object.entries(known.revisions).find(
    ([digest, { standing }]) => digest !== revision && standing.stage === 'canary',
  );
  if (to.stage === 'canary' && from.stage !== 'canary' && rival) return no(closed('another revision is the canary'));
  const alias = Object.entries(known.aliases).find(([, { revision: named }]) => named === revision)?.[0];
  if (alias === STABLE && to.stage !== 'full') return no(closed(`the alias "${STABLE}" names it`));
  if (alias !== undefined && to.stage === 'retired') return no(closed(`the alias "${alias}" names it`));
  const open = openGate(statement, signers, found.author, now);
  if (!open.ok) return open;
  return ok(open.value > 0 ? open.value : { type: 'stage', revision, from, to, statement: id, signers: [...signers] });
}

export interface AliasMove {
  readonly alias: string;
  /** What whoever moves it believes that it names now. */
  readonly from?: string | undefined;
  /** Absent: it is taken away. */
  readonly revision?: string | undefined;
  readonly reason?: string | undefined;
}

/** `undefined`: it names that already. */
export function decideAlias(
  known: Registry,
  { alias, from, revision, reason }: AliasMove,
): Result<EntryDraft | undefined> {
  const named = known.aliases[alias]?.revision;
  if (named === revision) return ok(undefined);
  if (named !== from) return no(refuse('alias_moved', { alias, revision: named ?? 'nothing' }));
  if (revision === undefined) {
    return alias === STABLE
      ? no(closed('what answers everybody can be moved, not taken away'))
      : ok({ type: 'alias', alias, from: named });
  }
  const found = known.revisions[revision];
  if (!found) return no(refuse('revision_unknown', { model: known.model }));
  const { stage } = found.standing;
  if (alias === STABLE && stage !== 'full')
    return no(closed(`a revision in the stage ${stage} cannot answer everybody`));
  if (stage === 'retired') return no(closed('the revision is retired'));
  if (named === undefined && Object.keys(known.aliases).length >= limits.modelAliases.value) {
    return no(closed(`a model has at most ${limits.modelAliases.value} aliases`));
  }
  return ok({
    type: 'alias',
    alias,
    revision,
    ...(named !== undefined && { from: named }),
    ...(reason !== undefined && { reason }),
  });
}
