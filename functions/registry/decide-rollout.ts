// Decides what follows when a revision, or one derived from it, fails at a gate. Pure: the log records it,
// and the worker that makes smaller revisions reads its orders there.
import { refuse } from '../../shared/refusal.ts';
import { evaluateEvidence, findMisses } from '../../shared/registry/evidence.ts';
import type { EntryDraft, Registry } from '../../shared/registry/registry.ts';
import { nextMethod, sourceOf } from '../../shared/registry/rollout.ts';
import { type Miss, showMisses } from '../../shared/registry/sla.ts';
import type { GateStatement } from '../../shared/registry/statement.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { FUNCTIONS, type TransitionContext, untimelyIn } from './gate.ts';

type Draft = Extract<EntryDraft, { type: 'rollout' }>;

const closed = (rule: string) => no(refuse('gate_closed', { rule }));

/** Returns the entry to write when the evidence shows a missed promise; `undefined` when it shows none. */
export function decideMiss(
  known: Registry,
  statement: GateStatement,
  { live = [], signers, now }: Pick<TransitionContext, 'live' | 'signers' | 'now'>,
): Draft | undefined {
  const { revision } = statement;
  const evidence = [...statement.evidence, ...live];
  if (signers.length === 0 || untimelyIn(statement, now) !== undefined) return undefined;
  const source = sourceOf(known.revisions, revision);
  const promised = known.revisions[revision]?.sla;
  const misses = promised ? findMisses(promised, evidence, now) : [];
  // A FAIL ends a derived revision: another can be made. For any other revision a person decides.
  const failed = source === revision ? undefined : evidence.find((one) => evaluateEvidence(one, now) === 'FAIL');
  if (misses.length === 0 && !failed) return undefined;
  const reason = misses.length > 0 ? showMisses(misses) : `"${failed?.kind}" is FAIL`;
  // Fewer bits make no fewer word errors.
  const hopeless = source === revision && misses.some(({ of }) => of === 'wordErrors');
  return draftOf(known, { source, failed: revision, misses, reason, hopeless, statement, signers });
}

interface Failure {
  readonly source: string;
  readonly failed?: string;
  readonly misses: readonly Miss[];
  readonly reason: string;
  readonly hopeless?: boolean;
  readonly statement: GateStatement;
  readonly signers: readonly string[];
}

function draftOf({ revisions }: Registry, failure: Failure): Draft {
  const { source, failed, misses, reason, hopeless = false, statement, signers } = failure;
  const next = hopeless ? undefined : nextMethod(revisions, source);
  return {
    type: 'rollout',
    revision: source,
    ...(failed !== undefined && { failed }),
    state: next ? 'making' : 'stopped',
    ...(next && { method: next }),
    reason: `${reason}; ${next ? `one is made with the method "${next}"` : 'nothing is left to try'}`,
    misses: [...misses],
    statement: statement.id,
    signers: [...signers],
  };
}

/**
 * Decides a statement that moves nothing: a worker reports that no smaller revision can be made, or a person
 * takes a rollout over, which resets it except for the methods that were tried.
 */
export function decideTakeover(
  known: Registry,
  statement: GateStatement,
  { people, workers }: { readonly people: readonly string[]; readonly workers: readonly string[] },
  now: number,
): Result<EntryDraft | number> {
  const { revision, from, to, id, reason, evidence } = statement;
  const untimely = untimelyIn(statement, now);
  if (untimely !== undefined) return closed(untimely);
  const rollout = known.revisions[revision]?.rollout;
  const report = evidence.find((one) => one.kind === 'quantise');
  if (report) {
    if (report.verdict !== 'FAIL' || rollout?.state !== 'making' || rollout.method !== report.method) {
      return closed('no rollout waits for it');
    }
    // The row bounds the stored text, and JSON escapes a control character with six characters.
    const problem = String(report.facts.problem ?? 'no reason given')
      .slice(0, 100)
      .replace(/\p{C}/gu, ' ');
    const why = `"${report.method}" cannot be made: ${problem}`;
    return ok(
      draftOf(known, { source: revision, misses: [], reason: why, statement, signers: [...people, ...workers] }),
    );
  }
  if (!rollout || rollout.state === 'resumed' || rollout.state === 'met')
    return closed('there is nothing to take over');
  if (!reason) return closed('a takeover needs a reason');
  if (!people.some((name) => name !== FUNCTIONS)) return ok(1);
  return ok({ type: 'stage', revision, from, to, statement: id, signers: [...people] });
}
