// Stored reports of live traffic. Each agent and model has one row, which only that agent's reports change,
// and one row with the counted part, which only the judge changes. Neither waits for the other.
import { z } from 'zod';
import { addCounts, countsSince, type LiveCounts, liveCounts, noCounts } from '../../shared/registry/live-counts.ts';
import type { LiveReport } from '../../shared/registry/live-report.ts';
import { endOf, type Row, type Rows, type Value } from '../store/rows.ts';
import { MODEL_TRIES_MAX } from './limits.ts';
import type { ModelContext } from './model-context.ts';
import { listModels } from './publish-release.ts';
import { trial } from './trial.ts';

/** Silence after which an agent's row is removed: it never comes back under that name. */
export const LIVE_GONE_S = 3_600;
/** Agents of a model whose counts fit one transaction of the table, which has room for 100 rows. */
const LIVE_AGENTS_MAX = 90;

/** Counts by revision. */
const revisionCounts = z.record(z.string(), z.object({ served: liveCounts, mirrored: liveCounts }));
export type ReportedCounts = z.infer<typeof revisionCounts>;

const agentRow = z.object({
  zone: z.string(),
  boot: z.string(),
  began: z.number().int(),
  seq: z.number().int(),
  /** Arrival of the last report, ms since 1970. */
  at: z.number().int(),
  now: revisionCounts,
  /** Last report of the previous boot. */
  last: z.object({ boot: z.string(), now: revisionCounts }).optional(),
});
export type AgentRow = z.infer<typeof agentRow>;

const takenRow = z.object({ boot: z.string(), now: revisionCounts });
export type TakenRow = z.infer<typeof takenRow>;

const window = z.object({
  from: z.number().int(),
  to: z.number().int(),
  streams: z.number().int(),
  failed: z.number().int(),
  p95: z.number().optional(),
});

const traffic = z.object({
  /** Time of the last counted traffic, ms since 1970. */
  at: z.number().int(),
  /** Totals since the first report. */
  served: liveCounts,
  /** The open window, and the closed ones. */
  open: z.object({ from: z.number().int(), counts: liveCounts }),
  windows: z.array(window),
});
export type Traffic = z.infer<typeof traffic>;

/** Traffic and trials of one model. */
export const live = z.object({ traffic: z.record(z.string(), traffic), trials: z.record(z.string(), trial) });
export type Live = z.infer<typeof live>;

export const LIVE = 'live';
const AGENT = 'l!';
const TAKEN = 't!';
export const takenKey = (agent: string): string => `${TAKEN}${agent}`;
export const agentKey = (agent: string): string => `${AGENT}${agent}`;

interface LiveContext extends Pick<ModelContext, 'log'> {
  readonly rows: Rows;
  now(): number;
}

/** Stores a report for each known model in it. Repeats have no effect. */
export async function storeReport(
  context: LiveContext,
  agent: string,
  zone: string,
  report: LiveReport,
): Promise<void> {
  const known = new Set((await listModels(context)).map(({ model }) => model));
  const models = new Set(report.models.map(({ model }) => model).filter((model) => known.has(model)));
  await Promise.all([...models].map((model) => storeModelReport(context, agent, { zone, model, report })));
}

async function storeModelReport(
  { rows, now, log }: LiveContext,
  agent: string,
  about: Omit<AgentReport, 'now'>,
): Promise<void> {
  const { model } = about;
  const key = agentKey(agent);
  for (let attempt = 0; attempt < MODEL_TRIES_MAX; attempt += 1) {
    const row = await rows.read(model, key);
    const next = afterReport(row && readable(log, model, row, agentRow), { ...about, now: now() });
    if (!next) return;
    const value = next as unknown as Value;
    const done = await rows.commit(model, [
      row ? { type: 'replace', key, value, version: row.version } : { type: 'insert', key, value },
    ]);
    if (done) return;
  }
}

/**
 * Parses a stored row. Logs an invalid one and treats it as absent, so that it blocks neither operators nor
 * the judging of other rows.
 */
function readable<T extends z.ZodType>(
  log: LiveContext['log'],
  model: string,
  { key, value }: Row,
  schema: T,
): z.infer<T> | undefined {
  const parsed = schema.safeParse(value);
  if (!parsed.success) log({ what: 'live unreadable', detail: `${model} ${key}` });
  return parsed.data;
}

interface AgentReport {
  readonly zone: string;
  readonly model: string;
  readonly report: LiveReport;
  readonly now: number;
}

/** Returns the row after a report; `undefined` when the report is a repeat or out of date. */
export function afterReport(
  known: AgentRow | undefined,
  { zone, model, report, now }: AgentReport,
): AgentRow | undefined {
  const { boot, began, seq } = report;
  if (known?.boot === boot && seq <= known.seq) return undefined;
  // A report of an earlier boot is obsolete.
  if (known && known.boot !== boot && began <= known.began) return undefined;
  const counted = Object.fromEntries(
    report.models
      .filter((one) => one.model === model)
      .map(({ revision, served = noCounts, mirrored = noCounts }) => [revision, { served, mirrored }]),
  );
  const last = known && known.boot !== boot ? { boot: known.boot, now: known.now } : known?.last;
  return { zone, boot, began, seq, at: now, now: counted, ...(last && { last }) };
}

/** Returns the uncounted part of an agent's reports, by revision. */
export function newsOf(row: AgentRow, taken: TakenRow | undefined): ReportedCounts {
  if (taken?.boot === row.boot) return combine(row.now, taken.now, countsSince);
  // The judge has forgotten the agent, or never counted it: its totals may be counted already.
  if (!taken && row.at - row.began > LIVE_GONE_S * 1_000) return {};
  if (!row.last) return row.now;
  const { boot, now } = row.last;
  return combine(row.now, taken?.boot === boot ? combine(now, taken.now, countsSince) : now, addCounts);
}

const none = { served: noCounts, mirrored: noCounts };

/** Combines the counts of all revisions of either. */
function combine(
  one: ReportedCounts,
  other: ReportedCounts,
  of: (a: LiveCounts, b: LiveCounts) => LiveCounts,
): ReportedCounts {
  const revisions = new Set([...Object.keys(one), ...Object.keys(other)]);
  return Object.fromEntries(
    [...revisions].map((revision) => {
      const [a, b] = [one[revision] ?? none, other[revision] ?? none];
      return [revision, { served: of(a.served, b.served), mirrored: of(a.mirrored, b.mirrored) }];
    }),
  );
}

export const hasNewCounts = (news: ReportedCounts): boolean =>
  Object.values(news).some(({ served, mirrored }) => served.streams + mirrored.streams > 0);

export interface AgentReports {
  readonly agent: string;
  readonly row: AgentRow;
  readonly taken: TakenRow | undefined;
}

/** Returns the last report of every agent of a model. */
export async function readAgents(
  { rows, log }: Pick<LiveContext, 'rows' | 'log'>,
  model: string,
): Promise<AgentReports[]> {
  const most = LIVE_AGENTS_MAX;
  const [agents, takens] = await Promise.all([
    rows.scan(model, AGENT, endOf(AGENT), most),
    rows.scan(model, TAKEN, endOf(TAKEN), most),
  ]);
  const counted = new Map(takens.map((one) => [one.key.slice(TAKEN.length), one]));
  return agents.flatMap((one) => {
    const agent = one.key.slice(AGENT.length);
    const row = readable(log, model, one, agentRow);
    const before = counted.get(agent);
    const taken = before && readable(log, model, before, takenRow);
    // An unreadable counted row excludes its agent: its reports could be counted twice.
    return row && (taken || !before) ? [{ agent, row, taken }] : [];
  });
}

/** Returns the totals, and the version for the next write. */
export async function readLive(
  { rows, log }: Pick<LiveContext, 'rows' | 'log'>,
  model: string,
): Promise<{ live: Live; version: string | undefined }> {
  const row = await rows.read(model, LIVE);
  const known = row && readable(log, model, row, live);
  return { live: known ?? { traffic: {}, trials: {} }, version: row?.version };
}
