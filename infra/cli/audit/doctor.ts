// auricle audit doctor: checks the audit log as far as a client can.

import { z } from 'zod';
import { type AuditHealth, auditHealth } from '../../../shared/audit/health.ts';
import { latestAt, openJudge } from '../../../shared/audit/judge.ts';
import { INDEX_BUNDLES_PER_ROUND_MAX, INTAKE_LIST_MAX, LOG_CLOCK_MS } from '../../../shared/audit/limits.ts';
import { readPolicy } from '../../../shared/audit/policy.ts';
import { TILE_WIDTH } from '../../../shared/audit/tile.ts';
import { type Answer, refused } from '../answer.ts';
import type { Arguments } from '../options.ts';
import { newestOf } from './find.ts';
import { fetchCheckpoint, listedLogs, openReader, Refused } from './log.ts';
import { recall } from './memory.ts';

/** Tolerated offset of the functions' clock from ours: the record orders events by the second. */
const DOCTOR_CLOCK_MS = 500;
/** Longest tolerated wait of an event for the log: after it the log reports a gap. */
export const DOCTOR_WAIT_MS = 60_000;
/** Tolerated age of the last entry: an idle log writes one each minute, so two are missing. */
export const DOCTOR_FRESH_MS = 180_000;
/**
 * Age at which an unwitnessed checkpoint is a fault: witnesses follow within seconds, so it is hidden from
 * them or they are down.
 */
export const WITNESS_LAG_MS = 600_000;

export interface Check {
  readonly zone: string;
  readonly check: string;
  /** `skip`: cannot be determined by this client; `detail` says why. */
  readonly outcome: 'ok' | 'fail' | 'skip';
  readonly detail: string;
}

/** Facts about one log. Times are ms since 1970; unknown facts are absent. */
export interface LogObservation {
  readonly zone: string;
  /** Size in the checkpoint if its signature verifies. */
  readonly signed: number | undefined;
  readonly problem?: string | undefined;
  /** Reports whether the key was given or remembered. */
  readonly pinned: boolean;
  /** Local times of the health request and of its answer. */
  readonly sentAt: number;
  readonly answered: number;
  readonly health: AuditHealth | undefined;
  /** Refusal in place of the health. */
  readonly unhealthy?: string;
  /** Newest checkpoint with the witness quorum of the log's own policy; `at` in epoch ms. */
  readonly witnessed?: { readonly size: number; readonly at: number } | undefined;
}

/** Evaluates the facts. Pure. */
export function checkLog(seen: LogObservation): Check[] {
  const { zone, signed, problem, pinned, health } = seen;
  const report = (check: string, good: boolean | undefined, detail: string): Check => ({
    ...{ zone, check, detail },
    outcome: good === undefined ? 'skip' : good ? 'ok' : 'fail',
  });
  const reached = report('log reachable', problem === undefined, problem ?? `${signed} entries`);
  if (problem !== undefined || signed === undefined) return [reached];
  const key = report(
    'signed by its key',
    true,
    pinned ? 'the key that was known before' : 'first contact: run audit verify, and store the key elsewhere',
  );
  if (!health)
    return [
      reached,
      key,
      report('health', false, seen.unhealthy ?? 'the functions do not report the health of the log'),
    ];
  return [reached, key, ...judgeHealth(seen, health, report)];
}

type Report = (check: string, good: boolean | undefined, detail: string) => Check;
/** At most `most` ms old, and not further ahead than writers' clocks may differ. */
const isPast = (age: number, most: number): boolean => age <= most && age >= -LOG_CLOCK_MS;
const seconds = (ms: number): string => `${Math.round(ms / 100) / 10} s`;

function judgeHealth({ sentAt, answered, witnessed }: LogObservation, health: AuditHealth, report: Report): Check[] {
  const { at, log, intake, outboxes, locked, development, fullStores = [] } = health;
  const offset = Math.max(0, Math.abs(at - (sentAt + answered) / 2) - (answered - sentAt) / 2);
  const age = at - (log?.last ?? 0);
  const behind = (log?.size ?? 0) - (log?.published ?? 0);
  const outbox = (name: string, one: { waiting: number; oldestMs: number } | undefined): Check[] =>
    one
      ? [
          report(
            `outbox of the ${name}`,
            one.oldestMs <= DOCTOR_WAIT_MS,
            `${one.waiting} wait, the oldest for ${seconds(one.oldestMs)}`,
          ),
        ]
      : [];
  return [
    report('checkpoint fresh', isPast(age, DOCTOR_FRESH_MS), `the last entry is ${seconds(age)} old`),
    report('published', ...judgePublished(behind, age, log?.unsigned)),
    report('clock', offset <= DOCTOR_CLOCK_MS, clockText(at - (sentAt + answered) / 2, offset)),
    report(
      'intake',
      intake.waiting < INTAKE_LIST_MAX && intake.oldestMs <= DOCTOR_WAIT_MS,
      `${intake.waiting} deliveries wait, the oldest for ${seconds(intake.oldestMs)}`,
    ),
    ...outbox('gate', outboxes.gate),
    ...outbox('roster', outboxes.roster),
    report('nothing missing', ...judgeGaps(health)),
    report('one history', ...judgeHistory(health)),
    report('room', !log?.full, log?.full ? 'full: events of new outboxes wait' : 'for new outboxes'),
    ...(fullStores.length > 0
      ? [report('storage', false, `full, so writes are refused: ${fullStores.join(', ')}`)]
      : []),
    report('witnessed', ...judgeWitnessed(health, witnessed, answered)),
    // A policy may be unlocked or last one day: a client cannot tell that it suffices.
    report('write once', locked || development ? undefined : false, lockOf(locked, development)),
  ];
}

/** Entries that one round of the functions reads: a larger backlog may hide gaps. */
const GAPS_BEHIND_MAX = INDEX_BUNDLES_PER_ROUND_MAX * TILE_WIDTH;

function judgeGaps({ log, gaps = { open: 0, accepted: 0, behind: 0 } }: AuditHealth): [boolean, string] {
  const accepted = gaps.accepted > 0 ? [`accepted gaps: ${gaps.accepted}`] : [];
  const wrong = [
    ...(log?.late ? [`${log.late} outboxes have holes that may still be filled`] : []),
    ...(gaps.open > 0 ? [`gaps that no operator has accepted: ${gaps.open} (auricle audit gaps)`] : []),
    ...(gaps.behind > GAPS_BEHIND_MAX ? [`${gaps.behind} entries not searched for gaps yet`] : []),
  ];
  const detail = wrong.length > 0 ? wrong : [`${log?.open ?? 0} outboxes are open`];
  return [wrong.length === 0, [...detail, ...accepted].join(', ')];
}

function clockText(ahead: number, offset: number): string {
  if (offset <= DOCTOR_CLOCK_MS) return `${Math.round(offset)} ms apart at least`;
  return `the functions' clock is ${seconds(offset)} ${ahead > 0 ? 'ahead' : 'behind'}, or this machine's is wrong`;
}

function judgePublished(behind: number, age: number, unsigned: readonly string[] = []): [boolean, string] {
  if (unsigned.length > 0) return [false, `without the signature of its key of ${unsigned.join(' and ')}`];
  if (behind === 0) return [true, 'all of it'];
  return [isPast(age, DOCTOR_WAIT_MS), `${behind} entries are not, since ${seconds(age)}`];
}

function judgeHistory({
  witnesses,
  refusing = [],
  doubted = [],
  diverged,
}: AuditHealth): [boolean | undefined, string] {
  const stopped = 'stopped until an operator resolves it';
  if (diverged) return [false, `${diverged.witness} ${diverged.why}: ${stopped}`];
  if (doubted.length > 0) return [false, doubted.map(({ witness, why }) => `${witness} ${why}`).join('; ')];
  if (refusing.length > 0) return [false, `refused by ${refusing.join(', ')}`];
  return witnesses ? [true, 'no witness has seen another history'] : [undefined, 'the log has no witness'];
}

/**
 * Evaluates the age of the witnessed checkpoint. Witnesses cosign after publication, so the newest checkpoint
 * lacks them for a moment. The age of the newest entry proves nothing: in an active log it is always recent.
 */
function judgeWitnessed(
  { witnesses, log }: AuditHealth,
  witnessed: LogObservation['witnessed'],
  now: number,
): [boolean | undefined, string] {
  if (!witnesses) return [undefined, 'its policy names no witnesses'];
  const published = log?.published ?? 0;
  if (!witnessed) return [false, `0 of ${published} entries`];
  const age = now - witnessed.at;
  if (witnessed.size >= published) return [true, 'as the policy of the log requires'];
  return [age <= WITNESS_LAG_MS, `${witnessed.size} of ${published} entries, ${seconds(age)} ago`];
}

function lockOf(locked: boolean | undefined, development: boolean): string {
  if (locked)
    return 'storage has an immutability policy; whether it is locked, and for how many days, is not visible: see infra/azure/audit';
  if (locked === undefined) return 'storage does not report an immutability policy';
  return `storage has no immutability policy${development ? ', which a development stack need not have' : ''}`;
}

export async function auditDoctor(
  given: Pick<Arguments, 'edge' | 'zone' | 'key'>,
  headers: Record<string, string>,
): Promise<Answer> {
  const response = await fetch(`${given.edge}/v1/audit/log`, { headers });
  if (!response.ok) return refused(response);
  const { data } = listedLogs.parse(await response.json());
  const logs = newestOf(data).filter(({ zone }) => zone === given.zone || given.zone === undefined);
  const checks = (await Promise.all(logs.map(async (log) => checkLog(await look(given, log, headers))))).flat();
  if (logs.length === 0)
    checks.push({ zone: given.zone ?? '-', check: 'log reachable', outcome: 'fail', detail: 'there is none' });
  checks.push(...(await checkAgents(given.edge, headers)));
  const failed = checks.filter(({ outcome }) => outcome === 'fail').length;
  const rows = checks.map(
    ({ zone, check, outcome, detail }) => `${outcome.padEnd(4)}  ${zone.padEnd(6)}  ${check.padEnd(20)}  ${detail}`,
  );
  const verdict = failed === 0 ? 'all checks passed' : `${failed} of ${checks.length} checks failed`;
  return { exit: failed === 0 ? 0 : 1, text: [...rows, verdict].join('\n'), value: { ok: failed === 0, checks } };
}

const refusedAgents = z.object({ refused: z.array(z.object({ pool: z.string(), zone: z.string(), why: z.string() })) });

/**
 * Reports agents that the Roster refuses, for instance because of a wrong clock. Operators only: other
 * callers get no check.
 */
async function checkAgents(edge: string, headers: Record<string, string>): Promise<Check[]> {
  const response = await fetch(`${edge}/v1/pools`, { headers });
  const listed = refusedAgents.safeParse(response.ok ? await response.json() : undefined);
  const found = listed.data?.refused ?? [];
  return found.map(({ pool, zone, why }) => ({ zone, check: `agent of ${pool}`, outcome: 'fail', detail: why }));
}

type Listed = ReturnType<typeof listedLogs.parse>['data'][number];

async function look(
  { edge, key }: Pick<Arguments, 'edge' | 'key'>,
  { zone, vkey: named, prefix }: Listed,
  headers: Record<string, string>,
): Promise<LogObservation> {
  const base = `${edge}${prefix}`;
  const known = key ?? recall(base)?.vkey;
  const reader = await openReader(base, known ?? named, headers);
  const seen = { zone, pinned: known !== undefined, signed: undefined, health: undefined, sentAt: 0, answered: 0 };
  if (!reader) return { ...seen, problem: 'its key is malformed' };
  try {
    const { note, checkpoint } = await fetchCheckpoint(reader);
    const sentAt = Date.now();
    const answer = await fetch(`${edge}/v1/audit/health?zone=${encodeURIComponent(zone)}`, { headers });
    const answered = Date.now();
    const unhealthy = answer.ok ? undefined : (await refused(answer)).text;
    const health = answer.ok ? auditHealth.safeParse(await answer.json()).data : undefined;
    const policy = health?.witnesses ? readPolicy(await reader.fetch('policy')) : undefined;
    const seenBy = policy?.ok ? await reader.fetch('witnessed').catch(() => note) : note;
    const latest = latestAt(answered);
    const judged = policy?.ok ? await (await openJudge(policy.value))(seenBy, latest) : undefined;
    const at = Math.min(...(judged?.witnesses ?? []).map(({ time }) => time)) * 1_000;
    const witnessed = judged?.quorum && judged.witnesses.length > 0 ? { size: judged.checkpoint.size, at } : undefined;
    const refusal = unhealthy !== undefined && { unhealthy };
    return { ...seen, signed: checkpoint.size, sentAt, answered, health, ...refusal, witnessed };
  } catch (error) {
    if (error instanceof Refused) return { ...seen, problem: (await refused(error.response)).text };
    return { ...seen, problem: error instanceof Error ? error.message : 'no reason given' };
  }
}
