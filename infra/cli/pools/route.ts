// auricle route explain: how the agents of a recent request were chosen.
import { z } from 'zod';
import type { Answer } from '../answer.ts';
import { callEdge, type Headers } from '../models/registry.ts';
import type { Arguments } from '../options.ts';
import { table } from '../table.ts';

const where = { agent: z.string(), pool: z.string(), zone: z.string() };

/** Decision as the edge stored it; an edge of another version may send more. */
const decision = z.looseObject({
  request: z.string(),
  at: z.number(),
  task: z.string(),
  model: z.string(),
  language: z.string().optional(),
  class: z.string(),
  zones: z.array(z.string()),
  candidates: z.array(z.object({ ...where, cost: z.record(z.string(), z.number()) })),
  excluded: z.array(z.object({ ...where, why: z.string() })),
  unlisted: z.number(),
  attempts: z.array(z.object({ ...where, why: z.string(), outcome: z.string() })),
  outcome: z.string(),
});
type Decision = z.infer<typeof decision>;

/** `auricle route explain REQUEST` */
export async function explainRoute({ edge, operands }: Arguments, headers: Headers): Promise<Answer> {
  const [, name = ''] = operands;
  const found = await callEdge({ edge, headers }, `requests/${encodeURIComponent(name)}/route`, decision);
  if ('exit' in found) return found;
  return { exit: 0, text: textOf(found.value), value: found.value };
}

/** Renders a decision: the request, candidates with their costs, other agents, and attempts. */
export function textOf({ candidates, excluded, attempts, unlisted, ...one }: Decision): string {
  const terms = [...new Set(candidates.flatMap(({ cost }) => Object.keys(cost)))].filter((term) => term !== 'total');
  const costs = candidates.map(({ agent, pool, zone, cost }) => {
    const ms = [...terms, 'total'].map((term) => String(cost[term] ?? 0));
    return [agent, pool, zone, ...ms];
  });
  const sections = [
    `${one.task} ${one.model}${one.language === undefined ? '' : ` (${one.language})`}, class ${one.class}, ` +
      `zones ${one.zones.join(' ')}, at ${new Date(one.at).toISOString()}: ${one.outcome}`,
    costs.length > 0 &&
      table([['candidate', 'pool', 'zone', ...terms.map((term) => `${term} ms`), 'total ms'], ...costs]),
    excluded.length > 0 &&
      table([['not considered', 'pool', 'zone', 'why'], ...excluded.map((no) => [no.agent, no.pool, no.zone, no.why])]),
    unlisted > 0 && `and ${unlisted} more agents`,
    attempts.length > 0 &&
      table([
        ['attempt', 'pool', 'zone', 'why', 'outcome'],
        ...attempts.map((no) => [no.agent, no.pool, no.zone, no.why, no.outcome]),
      ]),
  ];
  return sections.filter(Boolean).join('\n\n');
}
