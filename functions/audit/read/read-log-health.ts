// Health of a log, from storage.
import type { Gap } from '../../../shared/audit/gaps.ts';
import type { LogHealth } from '../../../shared/audit/health.ts';
import { latestAt, openJudge } from '../../../shared/audit/judge.ts';
import { INTAKE_LIST_MAX } from '../../../shared/audit/limits.ts';
import type { Settings } from '../../settings.ts';
import type { Rows } from '../../store/rows.ts';
import type { LogContext } from '../context/log-context.ts';
import type { Position } from '../entries/entry-rows.ts';
import { indexedUpTo } from '../entries/follow-log.ts';
import { readGaps } from '../entries/gap-rows.ts';
import { readReceived } from '../intake/intake.ts';
import { newestState } from '../log/acknowledge.ts';
import { readDiverged } from '../log/diverged.ts';
import { HEALTH_INTAKE_MAX, readDoubts } from '../log/doubted.ts';
import { checkpointName, refusedName, witnessedName } from '../log/log-names.ts';
import { isFull, type LogState } from '../log/log-state.ts';
import type { LogStore } from '../log/log-store.ts';
import { headOf } from '../log/publish-checkpoint.ts';

type HealthContext = Pick<LogContext, 'policy' | 'now'> & {
  /** The index, which knows the gaps. */
  readonly rows?: Rows;
  readonly store: LogStore;
  readonly settings: Partial<Pick<Settings, 'MODE'>>;
};

export async function readLogHealth(context: HealthContext, zone: string): Promise<LogHealth> {
  const { store, now, settings, rows } = context;
  const state = await newestState(store, zone);
  const [log, intake, locked, mark, refused, doubts, found] = await Promise.all([
    state && state.size > 0 ? lookAtState(context, zone, state) : undefined,
    lookAtIntake(context, zone),
    store.isLocked?.().catch(() => undefined),
    readDiverged(store, zone),
    store.list('state', refusedName(zone, ''), HEALTH_INTAKE_MAX),
    readDoubts(store, zone),
    rows && Promise.all([readGaps(rows, zone, now()), indexedUpTo({ rows, zone })]),
  ]);
  const gaps = state && found && countGaps(state, ...found);
  return {
    ...{ zone, at: now(), intake, development: settings.MODE === 'development' },
    witnesses: state !== undefined && context.policy(state.origin).witnesses.length > 0,
    ...(log && { log }),
    ...(gaps && { gaps }),
    ...(locked !== undefined && { locked }),
    ...(refused.length > 0 && { refusing: refused.map((name) => decodeURIComponent(name.split('/').at(-1) ?? '')) }),
    ...(doubts.length > 0 && { doubted: doubts.map(({ at, witness, why }) => ({ at, witness, why })) }),
    ...(mark && { diverged: { at: mark.at, witness: mark.witness, why: mark.why } }),
  };
}

function countGaps({ year, size }: LogState, gaps: readonly Gap[], upTo?: Position): LogHealth['gaps'] {
  const accepted = gaps.filter((gap) => gap.accepted).length;
  return { open: gaps.length - accepted, accepted, behind: size - (upTo?.year === year ? upTo.index : 0) };
}

/** All logs there are; null for one that cannot be read now. */
export async function readLogsHealth(
  context: (HealthContext & Pick<LogContext, 'zones'>) | undefined,
): Promise<Record<string, LogHealth | null>> {
  const zones = context?.zones ?? [];
  const looked = await Promise.all(
    zones.map((zone) => (context ? readLogHealth(context, zone).catch(() => null) : null)),
  );
  return Object.fromEntries(zones.map((zone, at) => [zone, looked[at] ?? null]));
}

async function lookAtState(
  { store, policy, now }: HealthContext,
  zone: string,
  state: LogState,
): Promise<LogHealth['log']> {
  const { origin, year, size, last, lives = {}, late = {} } = state;
  const [published, witnessed] = await Promise.all([
    store.read('state', checkpointName(zone, year)),
    store.read('state', witnessedName(zone, year)),
  ]);
  const { logs } = policy(origin);
  const judge = await openJudge(policy(origin));
  const enough = witnessed && (await judge(witnessed.bytes, latestAt(now())))?.quorum;
  const signed = published && (await judge(published.bytes))?.logKeys.map(({ type }) => type);
  const unsigned = signed && logs.flatMap(({ key: { type } }) => (signed.includes(type) ? [] : [type]));
  return {
    ...{ origin, size, last, published: published ? headOf(published.bytes).size : 0 },
    ...(unsigned && unsigned.length > 0 && { unsigned }),
    ...(witnessed && enough && { witnessed: headOf(witnessed.bytes).size }),
    open: Object.values(lives).filter((at) => at > 0).length,
    late: Object.keys(late).length,
    full: isFull(state),
  };
}

async function lookAtIntake({ store, now }: HealthContext, zone: string): Promise<LogHealth['intake']> {
  const names = await store.list('intake', `${zone}/`, INTAKE_LIST_MAX);
  // A sample by name is enough to see that nothing moves.
  const read = await Promise.all(names.slice(0, HEALTH_INTAKE_MAX).map((name) => store.read('intake', name)));
  const at = now();
  const ages = read.flatMap((stored) => (stored ? [at - sinceOf(stored.bytes)] : []));
  return { waiting: names.length, oldestMs: Math.max(0, ...ages) };
}

/** Returns the time of receipt. An unreadable delivery counts as new, since the next round sets it aside. */
function sinceOf(bytes: Uint8Array): number {
  try {
    return readReceived(bytes).at;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
