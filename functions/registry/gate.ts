// Evidence and signatures that each gate requires.

import { CLOCK_SKEW_S } from '../../shared/clock-offset.ts';
import { refuse } from '../../shared/refusal.ts';
import { CANARY_STREAMS, decideCanary } from '../../shared/registry/canary.ts';
import { type Evidence, type EvidenceKind, evaluateEvidence } from '../../shared/registry/evidence.ts';
import { type Move, moveOf, type Standing, showStanding } from '../../shared/registry/stage.ts';
import type { GateStatement } from '../../shared/registry/statement.ts';
import { no, ok, type Result } from '../../shared/result.ts';

/** Age at which evidence is of another fleet and another traffic: a week. */
export const MODEL_STATEMENT_S = 604_800;

/** Signer name of the functions themselves. Not a person, so gates that require people do not count it. */
export const FUNCTIONS = 'functions';

interface Gate {
  /** Kinds of evidence required at least once; everything sent must be a PASS. */
  readonly needs: readonly EvidenceKind[];
  /** Number of people who must sign. */
  readonly signers: number;
  /** The author of the revision counts as a signer. */
  readonly author: boolean;
}

/** Gates by the stage that they open. */
const gates: Readonly<Record<'grey' | 'canary' | 'full', Gate>> = {
  grey: { needs: ['scan', 'load', 'latency', 'quality'], signers: 1, author: true },
  canary: { needs: ['stability', 'disagreement'], signers: 1, author: false },
  full: { needs: ['rates'], signers: 2, author: false },
};

/** Withdrawal and retirement need one signer and no evidence: the way out of trouble has no gate. */
const free: Gate = { needs: [], signers: 1, author: true };

/** A higher share is no promotion: it needs enough streams and no harm, not a PASS. */
const stepGate: Gate = { needs: ['rates'], signers: 1, author: true };
/** Gate of a step whose rates people report: an author alone moves nothing on numbers of their own. */
const reportedStepGate: Gate = { ...stepGate, author: false };

const closed = (rule: string) => no(refuse('gate_closed', { rule }));

/** Evidence that a gate judges. `reported`: kinds that stand on the word of the signers alone. */
interface Weighed {
  readonly evidence: readonly Evidence[];
  readonly reported: ReadonlySet<EvidenceKind>;
}

/**
 * Weighs signed evidence against live traffic. Evidence that the functions measured replaces signed evidence of its kind,
 * whatever either says. Live evidence without a single count replaces nothing.
 */
function weigh(signed: readonly Evidence[], live: readonly Evidence[]): Weighed {
  const measured = new Set(live.filter(isMeasured).map(({ kind }) => kind));
  const kept = signed.filter(({ kind }) => !measured.has(kind));
  const reported = new Set(kept.map(({ kind }) => kind));
  return { evidence: [...kept, ...live.filter(({ kind }) => !reported.has(kind))], reported };
}

function isMeasured(one: Evidence): boolean {
  if (one.kind === 'rates') return one.run.streams + one.run.bad.length + one.run.failed.length > 0;
  return !('streams' in one) || one.streams > 0;
}

export interface TransitionContext {
  readonly signers: readonly string[];
  /** Machines that signed beside `signers`. */
  readonly workers?: readonly string[] | undefined;
  /** Epoch ms. */
  readonly now: number;
  /** Live evidence of the revision; see `trial.ts`. */
  readonly live?: readonly Evidence[] | undefined;
  /** The store lacks files of the revision. */
  readonly filesMissing?: boolean | undefined;
}

/** Returns how many more people must sign; 0: the gate is open. `author`: one, or all. */
export function openGate(
  signed: GateStatement,
  author: string | readonly string[],
  { signers, now, live = [] }: TransitionContext,
): Result<number> {
  const { evidence, reported } = weigh(signed.evidence, live);
  const statement = { ...signed, evidence: [...evidence] };
  const move = moveOf(statement.from, statement.to);
  if (!move) return closed(`there is no way from ${showStanding(statement.from)} to ${showStanding(statement.to)}`);
  const untimely = untimelyIn(statement, now);
  if (untimely !== undefined) return closed(untimely);
  const gate = gateOf(move, statement.to, reported.has('rates'));
  const failed = move === 'advance' && evidence.find((one) => evaluateEvidence(one, now) === 'FAIL');
  if (failed) return closed(`"${failed.kind}" is FAIL`);
  const missing = gate.needs.find((kind) => !statement.evidence.some((one) => one.kind === kind));
  if (missing !== undefined) return closed(`evidence of the kind "${missing}" is missing`);
  const problem = move === 'step-up' ? stepProblem(statement, now) : problemOf(move, statement, now);
  if (problem !== undefined) return closed(problem);
  const people = move === 'advance' ? signers.filter((name) => name !== FUNCTIONS) : signers;
  const counting = new Set(people.filter((name) => gate.author || ![author].flat().includes(name)));
  return ok(Math.max(0, gate.signers - counting.size));
}

export function untimelyIn({ at }: GateStatement, now: number): string | undefined {
  if (now - at > MODEL_STATEMENT_S * 1_000) return 'its evidence is too old';
  return at - now > CLOCK_SKEW_S * 1_000 ? 'it is from the future' : undefined;
}

function gateOf(move: Move, to: Standing, ratesReported: boolean): Gate {
  if (move === 'step-up') return ratesReported ? reportedStepGate : stepGate;
  return move === 'advance' ? gates[to.stage as keyof typeof gates] : free;
}

/**
 * Returns the problem of the evidence of an `advance`, which must all be PASS. INCONCLUSIVE asks for more
 * evidence and opens nothing.
 */
function problemOf(move: Move, { evidence, from }: GateStatement, now: number): string | undefined {
  if (move !== 'advance') return undefined;
  const runs = runsOf(evidence);
  if (runs.some((run) => run.share !== from.share)) return 'the canary it tells of was at another share';
  for (const one of evidence) {
    const found = evaluateEvidence(one, now);
    if (found !== 'PASS') return `"${one.kind}" is ${found}`;
  }
  return runs.some((run) => decideCanary(run, now).move !== 'promote')
    ? `fewer than ${CANARY_STREAMS} streams at the last share`
    : undefined;
}

function stepProblem({ evidence, from }: GateStatement, now: number): string | undefined {
  const runs = runsOf(evidence);
  if (runs.some((run) => run.share !== from.share)) return 'the canary it tells of was at another share';
  if (evidence.some((one) => evaluateEvidence(one, now) === 'FAIL')) return 'a FAIL is among its evidence';
  return runs.some((run) => run.streams < CANARY_STREAMS)
    ? `fewer than ${CANARY_STREAMS} streams at this share`
    : undefined;
}

const runsOf = (evidence: readonly Evidence[]) => evidence.flatMap((one) => (one.kind === 'rates' ? [one.run] : []));
