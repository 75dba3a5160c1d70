// The explanation of a choice: what each candidate cost, and why the other agents were none.
import { z } from 'zod';
import { agentDescription } from '../../shared/pool/description.ts';
import type { RosterEntry, Snapshot } from '../../shared/pool/heartbeat.ts';
import { classes } from '../../shared/tenant/claims.ts';
import { healthOf } from './agent-health.ts';
import { candidatesFor } from './constraints.ts';
import { costContext, costOf } from './cost.ts';
import { withoutEjected } from './memory.ts';
import type { PickContext } from './pick.ts';
import { revisionsFor, warmest } from './revisions.ts';
import type { Candidate, RouteRequest } from './route.ts';

/** Candidates, and as many other agents, that one explanation lists: some 4 kB. */
const EXPLAINED_AGENTS_MAX = 16;

const { agent, pool, zone, region } = agentDescription.shape;
const where = { agent, pool, zone, region };

/** Decision about one request, without content. */
export const routeDecision = z.object({
  object: z.literal('route'),
  request: z.string(),
  at: z.number().describe('Time of the decision, ms since 1970'),
  task: z.string(),
  model: z.string(),
  language: z.string().optional(),
  class: z.enum(classes),
  zones: z.array(z.string()).describe('Residency zones of the tenant'),
  candidates: z
    .array(z.object({ ...where, cost: z.record(z.string(), z.number()).describe('ms by term, and their total') }))
    .describe('Agents that could take the request. Two are drawn by their slots, and the cheaper one serves'),
  excluded: z.array(z.object({ ...where, why: z.string() })).describe('Other agents'),
  unlisted: z.number().int().describe('Agents beyond the listed ones'),
  attempts: z.array(z.object({ agent, pool, zone, why: z.string(), outcome: z.string() })),
  outcome: z.string().describe('`served`, or the reason of the refusal'),
});

export type RouteDecision = z.infer<typeof routeDecision>;
export type Explanation = Omit<RouteDecision, 'request' | 'attempts' | 'outcome'>;

/** Explains how agents were considered for a request, by the rules and at the moment of `pick`. */
export function explain(request: RouteRequest, { snapshots, memory, now }: Omit<PickContext, 'random'>): Explanation {
  const { task, model, language, zones } = request;
  const able = candidatesFor(request, snapshots, now);
  const candidates = able.ok ? able.value : [];
  const cohort = revisionsFor(request, candidates);
  const left = withoutEjected(cohort, memory, now);
  const chosenFrom = left.length > 0 ? warmest(left) : left;
  const chosen = new Set(chosenFrom.map(({ entry }) => entry));
  const costs = costContext(chosenFrom, request, memory, now);
  const excluded = snapshots.flatMap((snapshot) =>
    snapshot.entries.filter((entry) => !chosen.has(entry)).map((entry) => ({ entry, snapshot })),
  );
  const listed = chosenFrom.slice(0, EXPLAINED_AGENTS_MAX);
  const others = excluded.slice(0, EXPLAINED_AGENTS_MAX).map(({ entry, snapshot }) => {
    const why = whyNot(entry, { request, snapshot, now, candidates, cohort, left });
    return { ...whereOf(entry), why };
  });
  return {
    object: 'route',
    at: now,
    ...{ task, model, class: request.class, zones: [...zones] },
    ...(language !== undefined && { language }),
    candidates: listed.map(({ entry }) => ({ ...whereOf(entry), cost: rounded(costOf(entry, request, costs)) })),
    excluded: others,
    unlisted: chosenFrom.length + excluded.length - listed.length - others.length,
  };
}

const whereOf = ({ description }: RosterEntry) => ({
  agent: description.agent,
  pool: description.pool,
  zone: description.zone,
  region: description.region,
});

/** Returns the terms that are not zero in whole ms, and their total. */
function rounded(cost: object): Record<string, number> {
  const terms = Object.entries(cost as Record<string, number>).map(([term, ms]) => [term, Math.round(ms)] as const);
  const total = terms.reduce((sum, [, ms]) => sum + ms, 0);
  return { ...Object.fromEntries(terms.filter(([, ms]) => ms !== 0)), total };
}

interface Considered {
  readonly request: RouteRequest;
  readonly snapshot: Snapshot;
  readonly now: number;
  readonly candidates: readonly Candidate[];
  readonly cohort: readonly Candidate[];
  readonly left: readonly Candidate[];
}

/** Returns why an agent was no candidate: the refusal of a fleet of this agent alone, or the step that left it out. */
function whyNot(entry: RosterEntry, { request, snapshot, now, candidates, cohort, left }: Considered): string {
  const isIn = (list: readonly Candidate[]) => list.some((one) => one.entry === entry);
  if (isIn(left)) return 'a colder tier of the model';
  if (isIn(cohort)) return 'ejected after failures';
  if (isIn(candidates)) return 'another revision than that of the cohort';
  const health = healthOf(entry, snapshot.at);
  if (health !== 'ready' && health !== 'unknown') return health;
  if (request.exclude?.has(entry.description.agent)) return 'tried before';
  // A set of exclusions keeps a fleet of one out of the cache.
  const alone = candidatesFor({ ...request, exclude: new Set() }, [{ ...snapshot, entries: [entry] }], now);
  return alone.ok ? 'not considered' : [alone.refusal.reason, alone.refusal.detail].filter(Boolean).join(': ');
}
