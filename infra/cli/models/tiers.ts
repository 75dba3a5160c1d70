// auricle model where, auricle tiers, auricle tiers explain: tiers of the files of revisions.
import { z } from 'zod';
import { agentDescription } from '../../../shared/pool/description.ts';
import { showStanding } from '../../../shared/registry/stage.ts';
import {
  blobTiers,
  type ModelTiers,
  modelTiers,
  type RevisionTiers,
  storeTiers,
  type TierPart,
} from '../../../shared/registry/tiers.ts';
import type { Answer } from '../answer.ts';
import type { Arguments } from '../options.ts';
import { callEdge, callRegistry, type Headers, shortOf, unknownModel } from './registry.ts';

const listed = z.object({ data: z.array(agentDescription.pick({ agent: true, pool: true, models: true })) });

/** `auricle model where MODEL`: storage tier of each revision, and the agents that have it. */
export async function where(given: Arguments, headers: Headers): Promise<Answer> {
  const [, model = ''] = given.operands;
  const caller = { edge: given.edge, headers };
  const [found, pools] = await Promise.all([
    callRegistry(caller, `${encodeURIComponent(model)}/tiers`, modelTiers),
    callEdge(caller, 'pools', listed),
  ]);
  if ('exit' in found) return found;
  if ('exit' in pools) return pools;
  if (found.value.revisions.length === 0) return unknownModel(given, headers, model);
  const revisions = found.value.revisions.map((one) => ({
    ...one,
    agents: agentsOf(pools.value, model, one.revision),
  }));
  const rows = revisions.map((one) => [
    ...[shortOf(one.revision), standingOf(one), tiersOf(one), showBytes(bytesOf(one))],
    one.agents.map(({ agent, tier }) => `${agent} ${tier}`).join(', ') || 'no agent',
  ]);
  return { exit: 0, text: table(rows), value: { model, revisions } };
}

/** Returns the agents with files of a revision; `blob` stands for an agent that only knows it. */
const agentsOf = ({ data }: z.infer<typeof listed>, name: string, revision: string) =>
  data.flatMap(({ agent, pool, models }) =>
    models
      .filter((one) => one.name === name && one.revision === revision)
      .map(({ tier = 'loaded' }) => ({ agent, pool, tier })),
  );

/** `auricle tiers`, `auricle tiers explain MODEL` */
export async function tiers(given: Arguments, headers: Headers): Promise<Answer> {
  const [what, model = ''] = given.operands;
  const caller = { edge: given.edge, headers };
  if (what === 'explain') {
    const found = await callRegistry(caller, `${encodeURIComponent(model)}/tiers`, modelTiers);
    if ('exit' in found) return found;
    if (found.value.revisions.length === 0) return unknownModel(given, headers, model);
    return { exit: 0, text: explain(found.value), value: found.value };
  }
  const found = await callEdge(caller, 'tiers', storeTiers);
  if ('exit' in found) return found;
  const rows = found.value.tiers.map(({ tier, revisions, files, bytes, monthly }) => [
    ...[tier, `${revisions} revisions`, `${files} files`, showBytes(bytes), `${dollars(monthly)} a month`],
  ]);
  return { exit: 0, text: `${table(rows)}\n${found.value.prices}`, value: found.value };
}

const explain = ({ prices, revisions }: ModelTiers): string =>
  [...revisions.flatMap((one) => [headOf(one), ...one.parts.flatMap(linesOf)]), prices].join('\n');

function headOf(one: RevisionTiers): string {
  const needs = one.needs.length > 0 ? `needed by ${one.needs.join(', ')}` : 'no need';
  const used = `used ${new Date(one.used).toISOString()}, ${one.uses} requests in 30 days`;
  return `${shortOf(one.revision)}  ${standingOf(one)}  ${needs}; ${used}${one.complete ? '' : '; files are missing'}`;
}

function linesOf(part: TierPart): string[] {
  const { tier, files, bytes, days, minimumDays, gbMonth, monthly, returning, move } = part;
  const stay = minimumDays > 0 ? `${count(days)} of at least ${minimumDays} days` : `${count(days)} days`;
  const price = `${dollars(monthly)} a month at ${dollars(gbMonth)} a GB`;
  const back = returning
    ? `, returns to ${returning.to} with ${returning.priority} priority${returning.expected === undefined ? '' : ` by ${new Date(returning.expected).toISOString()}`}`
    : '';
  const costs = blobTiers.map((one) => `${one} ${dollars(part.costs[one])}`).join(', ');
  const decided = move
    ? `moves to ${move.to} (${move.rule}): fees ${dollars(move.fees.total)}, of them ${dollars(move.fees.early)} for the minimum stay; saves ${dollars(move.savesMonthly)} a month`
    : 'stays';
  return [
    `  ${tier}  ${files} files, ${showBytes(bytes)}, ${stay}, ${price}${back}`,
    `    ${decided}; not below ${part.floor}; idle ${count(part.idleDays)} days`,
    `    over ${count(part.horizonDays)} days with ${count(part.expectedReads)} reads: ${costs}`,
  ];
}

const standingOf = ({ stage, share, aliases }: RevisionTiers): string =>
  `${showStanding({ stage, ...(share !== undefined && { share }) })}${aliases.length > 0 ? ` (${aliases.join(', ')})` : ''}`;

const tiersOf = ({ parts, complete }: RevisionTiers): string =>
  [...new Set(parts.map(({ tier, returning }) => (returning ? `${tier} → ${returning.to}` : tier)))].join('+') +
  (complete ? '' : ', incomplete');

const bytesOf = ({ parts }: RevisionTiers): number => parts.reduce((sum, { bytes }) => sum + bytes, 0);

const count = (value: number): string => String(Math.round(value * 10) / 10);
/** Shows small amounts with two digits: a small revision costs less than a cent. */
const dollars = (value: number): string => `$${value === 0 || value >= 1 ? value.toFixed(2) : value.toPrecision(2)}`;
const showBytes = (bytes: number): string => {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(1)} GB`;
  return bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.ceil(bytes / 1e3)} kB`;
};

/** Aligns columns. */
function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
