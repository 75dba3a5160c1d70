// auricle usage: requests and seconds of audio of each tenant and month, as CSV.
import { z } from 'zod';
import { agentDescription } from '../../../shared/pool/description.ts';
import { type Answer, refused, wrong } from '../answer.ts';
import { callEdge, type Headers } from '../models/registry.ts';
import type { Arguments } from '../options.ts';

const usedRow = z.object({
  ...{ tenant: z.string(), zone: z.string(), pool: z.string() },
  ...{ requests: z.number(), seconds: z.number() },
});
type UsedRow = z.infer<typeof usedRow>;

const page = z.object({ month: z.string(), data: z.array(usedRow), next: z.string().optional() });

const { pool, zone, price } = agentDescription.shape;
const listedPools = z.object({ data: z.array(z.object({ pool, zone, price, health: z.string() })) });
type PricedAgent = z.infer<typeof listedPools>['data'][number];

const HEADS = ['month', 'tenant', 'zone', 'pool', 'requests', 'audio_seconds', 'dollars_per_hour', 'dollars'];
const HOUR_S = 3_600;
const HOUR_MS = HOUR_S * 1_000;

/** `auricle usage`: all tenants are read, since the price of an hour follows from all audio of a pool. */
export async function usage(
  { edge, month: wanted, tenant }: Arguments,
  headers: Headers,
  now = Date.now(),
): Promise<Answer> {
  const month = wanted ?? new Date(now).toISOString().slice(0, 7);
  if (!/^\d{4}-(?:0[1-9]|1[0-2])$/.test(month)) return wrong(`"${month}" is not a month, as 2026-11`);
  const rows: UsedRow[] = [];
  for (let after: string | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
    const query = new URLSearchParams({ month, ...(after !== undefined && { after }) });
    const read = await callEdge({ edge, headers }, `usage?${query}`, page, undefined);
    if ('exit' in read) return read;
    rows.push(...read.value.data);
    after = read.value.next;
  }
  const response = await fetch(`${edge}/v1/pools`, { headers });
  if (!response.ok) return refused(response);
  const agents = listedPools.parse(await response.json()).data.filter(({ health }) => health !== 'gone');
  const priced = priceRows(rows, agents, hoursOf(month, now));
  const shown = priced.filter((row) => tenant === undefined || row.tenant === tenant);
  const lines = shown.map((row) =>
    [month, row.tenant, row.zone, row.pool, row.requests, row.seconds.toFixed(3), ...pricesOf(row)].join(','),
  );
  return { exit: 0, text: [HEADS.join(','), ...lines].join('\n'), value: { month, data: shown } };
}

interface PricedRow extends UsedRow {
  /** US dollars an hour of audio; absent where no price is known. */
  readonly hourly?: number;
}

const pricesOf = ({ hourly, seconds }: PricedRow): readonly [string, string] =>
  hourly === undefined ? ['', ''] : [hourly.toFixed(4), ((hourly * seconds) / HOUR_S).toFixed(2)];

/** Returns the hours of a month until `now`. */
export function hoursOf(month: string, now: number): number {
  const start = Date.parse(`${month}-01T00:00:00Z`);
  const end = new Date(start);
  end.setUTCMonth(end.getUTCMonth() + 1);
  return Math.max(0, Math.min(now, end.getTime()) - start) / HOUR_MS;
}

/** Adds the price of an hour of audio at the pool: the agents' hours by the hours of audio of all tenants. */
export function priceRows(rows: readonly UsedRow[], agents: readonly PricedAgent[], hours: number): PricedRow[] {
  const seconds = new Map<string, number>();
  for (const row of rows) seconds.set(row.pool, (seconds.get(row.pool) ?? 0) + row.seconds);
  const byPool = Map.groupBy(agents, (agent) => agent.pool);
  return rows.map((row) => {
    const prices = (byPool.get(row.pool) ?? []).map((agent) => agent.price);
    const known = prices.filter((one) => one !== undefined);
    const audioHours = (seconds.get(row.pool) ?? 0) / HOUR_S;
    if (known.length === 0 || known.length < prices.length || audioHours === 0) return row;
    return { ...row, hourly: (known.reduce((sum, one) => sum + one) * hours) / audioHours };
  });
}
