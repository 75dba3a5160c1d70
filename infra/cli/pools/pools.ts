// auricle pools, auricle pool drain: the pools of the fleet as the edge knows them.
import { z } from 'zod';
import { agentDescription, modelDescription } from '../../../shared/pool/description.ts';
import { load } from '../../../shared/pool/heartbeat.ts';
import { classes } from '../../../shared/tenant/claims.ts';
import { type Answer, refused } from '../answer.ts';
import { callEdge, type Headers } from '../models/registry.ts';
import type { Arguments } from '../options.ts';
import { table } from '../table.ts';

const { agent, pool, zone, region, device, price } = agentDescription.shape;
const counts = { slots: z.number(), streams: z.number().optional() };

/** Members of an agent that the table shows; an edge of another version may send more and other values. */
const listedAgent = z.object({
  ...{ agent, pool, zone, region, device, price, ...counts },
  ...{ platform: z.string(), accelerator: z.string(), health: z.string(), heardMs: z.number() },
  models: z.array(modelDescription.pick({ name: true, languages: true })),
  load: load.pick({ busy: true, streams: true, queued: true, power: true, degraded: true }),
});
type ListedAgent = z.infer<typeof listedAgent>;

const listed = z.looseObject({
  data: z.array(listedAgent),
  refused: z.array(z.object({ pool: z.string(), zone: z.string(), why: z.string() })),
});

const columns = ['pool', 'zone', 'region', 'platform', 'device', '$/hour', 'agents', 'health', 'heard', 'streams'];
const heads = [...columns, 'slots', 'queue', 'power', 'degraded', 'models (languages)'];
const NONE = '–';

/** `auricle pools`: a line for each pool, and one for each pool with a refused agent. */
export async function pools({ edge }: Arguments, headers: Headers): Promise<Answer> {
  const response = await fetch(`${edge}/v1/pools`, { headers });
  if (!response.ok) return refused(response);
  const value: unknown = await response.json();
  const { data, refused: rejected } = listed.parse(value);
  const rows = [...Map.groupBy(data, (one) => `${one.zone}/${one.pool}`).values()].map(rowOf);
  const reasons = rejected.map((one) => `refused: ${one.pool} (zone ${one.zone}): ${one.why}`);
  const text = rows.length > 0 ? table([heads, ...rows]) : 'no pools';
  return { exit: 0, text: [text, ...reasons].join('\n'), value };
}

/** Returns the cells of a pool. Sums are over its agents; gone ones count only as such. */
function rowOf(agents: readonly ListedAgent[]): string[] {
  const [first] = agents as readonly [ListedAgent, ...ListedAgent[]];
  const present = agents.filter(({ health }) => health !== 'gone');
  const sum = (read: (one: ListedAgent) => number | undefined) =>
    present.reduce((total, one) => total + (read(one) ?? 0), 0);
  const most = (read: (one: ListedAgent) => number | undefined) => {
    const values = present.map(read).filter((value) => value !== undefined);
    return values.length > 0 ? Math.max(...values) : undefined;
  };
  const [power, degraded] = [most((one) => one.load.power), most((one) => one.load.degraded)];
  const isPriced = present.some(({ price: dollars }) => dollars !== undefined);
  const queued = classes.flatMap((name) => {
    const count = sum((one) => one.load.queued[name]);
    return count > 0 ? [`${name} ${count}`] : [];
  });
  return [
    ...[first.pool, first.zone, first.region, first.platform],
    [...new Set(agents.map((one) => one.device ?? one.accelerator))].join(', '),
    isPriced ? sum((one) => one.price).toFixed(2) : NONE,
    String(present.length),
    healthOf(agents),
    `${(Math.min(...agents.map(({ heardMs }) => heardMs)) / 1_000).toFixed(1)} s ago`,
    `${sum((one) => one.load.streams)}/${sum((one) => one.streams)}`,
    `${sum((one) => one.load.busy)}/${sum((one) => one.slots)}`,
    queued.join(', ') || '0',
    power === undefined ? NONE : `${Math.round(power * 100)} %`,
    degraded === undefined ? NONE : `step ${degraded}`,
    modelsOf(present),
  ];
}

/** Returns the health of all agents in a word, or the number of agents of each. */
function healthOf(agents: readonly ListedAgent[]): string {
  const byHealth = [...Map.groupBy(agents, ({ health }) => health)];
  if (byHealth.length === 1) return byHealth[0]?.[0] ?? NONE;
  return byHealth.map(([health, { length }]) => `${length} ${health}`).join(', ');
}

function modelsOf(agents: readonly ListedAgent[]): string {
  const models = new Map(agents.flatMap((one) => one.models.map(({ name, languages }) => [name, languages])));
  const shown = [...models].sort(([one], [other]) => (one < other ? -1 : 1));
  return shown.map(([name, languages]) => `${name} (${languages.join(' ')})`).join(', ') || NONE;
}

const drained = z.object({ pool: z.string(), agents: z.array(z.string()) });

/** `auricle pool drain NAME` */
export async function drain({ edge, force, operands }: Arguments, headers: Headers): Promise<Answer> {
  const [, name = ''] = operands;
  const sent = { method: 'POST', body: { ...(force && { force }) } } as const;
  const found = await callEdge({ edge, headers }, `pools/${encodeURIComponent(name)}/drain`, drained, sent);
  if ('exit' in found) return found;
  const { agents } = found.value;
  return { exit: 0, text: `${name} drains: ${agents.join(', ')}`, value: found.value };
}
