// Models that requests were refused for because no agent serves them (`no_pool`), by zone. The edge reports each end of a
// request to the audit log of the tenant's home zone; the newest report of each model is stored here and wakes its pool.
import { z } from 'zod';
import type { Delivery } from '../../shared/audit/delivery.ts';
import type { Row, Rows } from '../store/rows.ts';

/** Time for which a refused request asks for a pool: KEDA polls twice a minute, and a client that still waits repeats it. */
export const DEMAND_MS = 300_000;
/** Change of a stored time that is worth a write: refusals come many a second. */
const DEMAND_STEP_MS = 10_000;
/** Models of a zone that are stored, newest first: callers request any name. One row has room for them. */
export const DEMAND_MODELS_MAX = 64;
/** Conditional writes that may lose in a row. A later refusal repeats what is lost. */
const DEMAND_TRIES_MAX = 4;
/** A partition that no tenant can be named after. */
const PARTITION = '!demand';

export interface DemandContext {
  readonly rows: Rows;
  /** Milliseconds since 1970. */
  now(): number;
}

/** End of a request that found no agent. */
const unserved = z.object({
  type: z.literal('inference.complete'),
  reason: z.literal('no_pool'),
  at: z.number().int(),
  model: z.string().min(1).max(128),
});

/** Time of the newest refusal by model, ms since 1970. */
const demandRow = z.record(z.string(), z.number());
type Demand = z.infer<typeof demandRow>;

/** Returns the models of a delivery that found no agent. */
export function unservedIn({ rows }: Pick<Delivery, 'rows'>, now: number): Demand {
  const demand: Demand = {};
  for (const event of rows.flatMap(({ events }) => events)) {
    const { data } = unserved.safeParse(event);
    // The clock of an edge may be ahead.
    if (data && data.at > now - DEMAND_MS)
      demand[data.model] = Math.min(now, Math.max(data.at, demand[data.model] ?? 0));
  }
  return demand;
}

/** Returns the stored demand after a delivery; `undefined` when it changes too little. */
export function afterDelivery(stored: Demand, found: Demand, now: number): Demand | undefined {
  if (!Object.entries(found).some(([model, at]) => at - (stored[model] ?? 0) >= DEMAND_STEP_MS)) return undefined;
  const newest = Object.entries({ ...stored, ...found })
    .map(([model, at]) => [model, Math.max(at, stored[model] ?? 0)] as const)
    .filter(([, at]) => at > now - DEMAND_MS)
    .sort(([, a], [, b]) => b - a);
  return Object.fromEntries(newest.slice(0, DEMAND_MODELS_MAX));
}

const readRow = (row: Row | undefined): Demand => demandRow.safeParse(row?.value).data ?? {};

/** Stores what a delivery of a zone says about models without agents. */
export async function noteDemand({ rows, now }: DemandContext, zone: string, delivery: Delivery): Promise<void> {
  const found = unservedIn(delivery, now());
  if (Object.keys(found).length === 0) return;
  for (let tries = 0; tries < DEMAND_TRIES_MAX; tries += 1) {
    const row = await rows.read(PARTITION, zone);
    const value = afterDelivery(readRow(row), found, now());
    if (!value) return;
    const change = row
      ? ({ type: 'replace', key: zone, version: row.version, value } as const)
      : ({ type: 'insert', key: zone, value } as const);
    if (await rows.commit(PARTITION, [change])) return;
  }
}

/** Counts the models that were refused lately. */
export async function countUnserved(
  { rows, now }: DemandContext,
  zone: string,
  models: readonly string[],
): Promise<number> {
  const stored = readRow(await rows.read(PARTITION, zone));
  return models.filter((model) => (stored[model] ?? 0) > now() - DEMAND_MS).length;
}
