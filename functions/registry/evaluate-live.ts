// Timer that counts the agents' reports, each number once, and judges the revisions on trial by them. A
// failing one is withdrawn at once; none is ever promoted here, which takes people.
import { addCounts, type LiveCounts, noCounts, p95Of } from '../../shared/registry/live-counts.ts';
import { type Registry, STABLE } from '../../shared/registry/registry.ts';
import type { Change, Value } from '../store/rows.ts';
import { missedLive } from './live-promise.ts';
import type { ModelContext } from './model-context.ts';
import { listModels } from './publish-release.ts';
import {
  type AgentReports,
  agentKey,
  hasNewCounts,
  LIVE,
  LIVE_GONE_S,
  type Live,
  newsOf,
  type ReportedCounts,
  readAgents,
  readLive,
  type Traffic,
  takenKey,
} from './stored-live.ts';
import { readModel } from './stored-model.ts';
import { addCountsToTrial, evaluateTrial, followStanding, isSettling, isUnderWay, type TrialCounts } from './trial.ts';
import { withdraw } from './withdraw.ts';

/** Silence after which an agent's revisions count as gone: three of its reports are missing. */
const LIVE_HERE_S = 180;
/** Removed agents, of two rows each, in one transaction with the rows of LIVE_AGENTS_MAX. */
const LIVE_GONE_MAX = 8;
/** Time without streams after which a revision is no longer listed: its counts are of other traffic. */
const LIVE_QUIET_S = 86_400;
/** Shortest window of live traffic. */
const LIVE_WINDOW_S = 10;
/** Fewest streams of a window: its 95th percentile is then not the slowest of all. */
const LIVE_WINDOW_STREAMS = 50;
/** Windows stored of a revision: two minutes at least. */
const LIVE_WINDOWS_MAX = 12;

/** Judges all models. A model that fails is tried again at the next run. */
export async function evaluateLive(context: ModelContext): Promise<void> {
  for (const { model } of await listModels(context)) {
    try {
      await judgeModel(context, model);
    } catch (error) {
      context.log({ what: 'live unjudged', detail: error instanceof Error ? error.name : 'unknown' });
    }
  }
}

async function judgeModel(context: ModelContext, model: string): Promise<void> {
  const agents = await readAgents(context, model);
  const [{ registry }, { live, version }] = await Promise.all([readModel(context, model), readLive(context, model)]);
  const now = context.now();
  const underWay = Object.values(registry.revisions).some(({ standing }) => isUnderWay(standing));
  if (!underWay && Object.keys(live.trials).length === 0 && agents.length === 0) return;
  const news = agents.map(({ row, taken }) => ({
    zone: row.zone,
    has: now - row.at > LIVE_HERE_S * 1_000 ? [] : Object.keys(row.now),
    news: newsOf(row, taken),
  }));
  const next = takeAll(live, registry, news, now);
  const value = next as unknown as Value;
  const done = await context.rows.commit(model, [
    version === undefined ? { type: 'insert', key: LIVE, value } : { type: 'replace', key: LIVE, value, version },
    ...rowsAfter(agents, now),
  ]);
  // A concurrent judge has counted the same reports.
  if (!done) return;
  for (const [revision, one] of Object.entries(next.trials)) {
    const windows = one.stage === 'canary' ? (next.traffic[revision]?.windows ?? []) : [];
    const late = missedLive(registry.revisions[revision]?.sla, windows, one.since, now);
    if (late || evaluateTrial(one, now) === 'FAIL') await withdraw(context, model, { revision, failed: one, late });
  }
}

/** Marks all reports as counted, and removes agents that are long silent. */
function rowsAfter(agents: readonly AgentReports[], now: number): Change[] {
  const gone = agents
    .filter(({ row, taken }) => now - row.at > LIVE_GONE_S * 1_000 && !hasNewCounts(newsOf(row, taken)))
    .slice(0, LIVE_GONE_MAX);
  return [
    ...agents.filter((one) => !gone.includes(one)).flatMap(takenChange),
    ...gone.flatMap(({ agent, taken }): Change[] => [
      { type: 'remove', key: agentKey(agent) },
      ...(taken ? [{ type: 'remove', key: takenKey(agent) } as const] : []),
    ]),
  ];
}

const takenChange = ({ agent, row, taken }: AgentReports): Change[] =>
  taken?.boot === row.boot && !hasNewCounts(newsOf(row, taken))
    ? []
    : [{ type: 'put', key: takenKey(agent), value: { boot: row.boot, now: row.now } }];

/** Uncounted reports of one agent. */
export interface NewCounts {
  readonly zone: string;
  /** Revisions that the agent reported last; empty when it has been silent. */
  readonly has: readonly string[];
  readonly news: ReportedCounts;
}

/** Adds all uncounted reports. Pure. */
function takeAll(live: Live, registry: Registry, agents: readonly NewCounts[], now: number): Live {
  const traffic = trafficAfter(live.traffic, agents, now);
  const stable = registry.aliases[STABLE]?.revision;
  const usual = (stable !== undefined && traffic[stable]?.served) || noCounts;
  const trials = Object.entries(registry.revisions).flatMap(([revision, { standing, since }]) => {
    const followed = isUnderWay(standing) ? followStanding(live.trials[revision], standing, since, usual) : undefined;
    if (!followed) return [];
    const news = () => ({ ...newsBeside(revision, stable, agents), usual });
    return [[revision, isSettling(followed, now) ? followed : addCountsToTrial(followed, news())] as const];
  });
  return { traffic, trials: Object.fromEntries(trials) };
}

const sumOf = (agents: readonly NewCounts[], revision: string, what: 'served' | 'mirrored'): LiveCounts =>
  agents.reduce((sum, { news }) => addCounts(sum, news[revision]?.[what] ?? noCounts), noCounts);

/**
 * Sums the trial's news, and that of the serving revision in zones where the trial could have been chosen:
 * other zones are no comparison.
 */
function newsBeside(
  revision: string,
  stable: string | undefined,
  agents: readonly NewCounts[],
): Omit<TrialCounts, 'usual'> {
  const zones = new Set(agents.filter(({ has }) => has.includes(revision)).map(({ zone }) => zone));
  const beside = agents.filter(({ zone }) => zones.has(zone));
  return {
    trial: { served: sumOf(agents, revision, 'served'), mirrored: sumOf(agents, revision, 'mirrored') },
    stable: stable === undefined ? noCounts : sumOf(beside, stable, 'served'),
  };
}

function trafficAfter(known: Live['traffic'], agents: readonly NewCounts[], now: number): Live['traffic'] {
  const revisions = new Set([...Object.keys(known), ...agents.flatMap(({ news }) => Object.keys(news))]);
  return Object.fromEntries(
    [...revisions].flatMap((revision) => {
      const next = windowAfter(known[revision], sumOf(agents, revision, 'served'), now);
      const quiet = now - next.at > LIVE_QUIET_S * 1_000;
      return quiet ? [] : [[revision, next] as const];
    }),
  );
}

function windowAfter(known: Traffic | undefined, more: LiveCounts, now: number): Traffic {
  const { at, served, open, windows } = known ?? {
    at: now,
    served: noCounts,
    open: { from: now, counts: noCounts },
    windows: [],
  };
  if (more.streams === 0) return { at, served, open, windows };
  const counts = addCounts(open.counts, more);
  const full = counts.streams >= LIVE_WINDOW_STREAMS && now - open.from >= LIVE_WINDOW_S * 1_000;
  const all = { at: now, served: addCounts(served, more) };
  if (!full) return { ...all, open: { from: open.from, counts }, windows };
  const p95 = p95Of(counts);
  const { streams, failed } = counts;
  const closed = { from: open.from, to: now, streams, failed, ...(p95 !== undefined && { p95 }) };
  return {
    ...all,
    open: { from: now, counts: noCounts },
    windows: [...windows, closed].slice(-LIVE_WINDOWS_MAX),
  };
}
