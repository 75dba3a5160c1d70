// auricle model where, auricle tiers, auricle tiers explain: tiers of revisions in storage and at agents.
import { z } from 'zod';
import { agentDescription } from '../../../shared/pool/description.ts';
import { showStanding } from '../../../shared/registry/stage.ts';
import {
  blobTiers,
  modelTiers,
  type RevisionTiers,
  storeTiers,
  type TierPart,
} from '../../../shared/registry/tiers.ts';
import type { Answer } from '../answer.ts';
import type { Arguments } from '../options.ts';
import { table } from '../table.ts';
import { namedModels } from './name.ts';
import { type Caller, callEdge, callRegistry, type Headers, shortOf, unknownModel } from './registry.ts';

const listed = z.object({ data: z.array(agentDescription.pick({ agent: true, pool: true, models: true })) });

/** `auricle model where MODEL`: storage tier of each revision, and the agents that have it. */
export async function where(given: Arguments, headers: Headers): Promise<Answer> {
  const [, model = ''] = given.operands;
  const read = await readTiers({ edge: given.edge, headers }, model);
  if ('exit' in read) return read;
  const plain = <T extends { readonly agents: readonly AgentTier[] }>(one: T) => ({
    ...one,
    agents: one.agents.map(({ residency: _, ...agent }) => agent),
  });
  const revisions = read.revisions.map(plain);
  const unregistered = read.unregistered.map(plain);
  if (revisions.length + unregistered.length === 0) return unknownModel(given, headers, model);
  const showAgents = (agents: readonly AgentTier[]) =>
    agents.map(({ agent, tier }) => `${agent} ${tier}`).join(', ') || 'no agent';
  const rows = [
    ...revisions.map((one) => [
      ...[shortOf(one.revision), standingOf(one), tiersOf(one), showBytes(bytesOf(one)), showAgents(one.agents)],
    ]),
    ...unregistered.map((one) => [shortOf(one.revision), 'not registered', 'not stored', '', showAgents(one.agents)]),
  ];
  return { exit: 0, text: table(rows), value: { model: read.found.model, revisions, unregistered } };
}

/** Reads the tiers of a model, or of the model that a name of the fleet stands for. */
async function readTiers(caller: Caller, name: string) {
  const read = await readOwnTiers(caller, name);
  if ('exit' in read || read.revisions.length + read.unregistered.length > 0) return read;
  const names = await callEdge(caller, 'names', namedModels);
  const named = 'exit' in names ? undefined : names.value.data.find((one) => one.name === name && !one.tenant);
  return named ? readOwnTiers(caller, named.model) : read;
}

/** Reads the storage tiers of a model's revisions and the agents that have them, registered or not. */
async function readOwnTiers(caller: Caller, model: string) {
  const [found, pools] = await Promise.all([
    callRegistry(caller, `${encodeURIComponent(model)}/tiers`, modelTiers),
    callEdge(caller, 'pools', listed),
  ]);
  if ('exit' in found) return found;
  if ('exit' in pools) return pools;
  const withAgents = <T extends { readonly revision: string }>(one: T) => ({
    ...one,
    agents: agentsOf(pools.value, model, one.revision),
  });
  const registered = new Set(found.value.revisions.map(({ revision }) => revision));
  const served = pools.value.data.flatMap(({ models }) => models.filter((one) => one.name === model));
  const others = new Set(served.flatMap(({ revision }) => (registered.has(revision) ? [] : [revision])));
  return {
    found: found.value,
    revisions: found.value.revisions.map(withAgents),
    unregistered: [...others].map((revision) => withAgents({ revision })),
  };
}

/** Returns the agents with files of a revision; `blob` stands for an agent that only knows it. */
const agentsOf = ({ data }: z.infer<typeof listed>, name: string, revision: string) =>
  data.flatMap(({ agent, pool, models }) =>
    models
      .filter((one) => one.name === name && one.revision === revision)
      .map(({ tier = 'loaded', residency }) => ({ agent, pool, tier, ...(residency && { residency }) })),
  );

type AgentTier = ReturnType<typeof agentsOf>[number];

/** `auricle tiers`, `auricle tiers explain MODEL` */
export async function tiers(given: Arguments, headers: Headers): Promise<Answer> {
  const [what, model = ''] = given.operands;
  const caller = { edge: given.edge, headers };
  if (what === 'explain') return explain(given, headers, model);
  const found = await callEdge(caller, 'tiers', storeTiers);
  if ('exit' in found) return found;
  const rows = found.value.tiers.map(({ tier, revisions, files, bytes, monthly }) => [
    ...[tier, counted(revisions, 'revision'), counted(files, 'file'), showBytes(bytes), `${dollars(monthly)} a month`],
  ]);
  return { exit: 0, text: `${table(rows)}\n${found.value.prices}`, value: found.value };
}

async function explain(given: Arguments, headers: Headers, model: string): Promise<Answer> {
  const read = await readTiers({ edge: given.edge, headers }, model);
  if ('exit' in read) return read;
  const { found, revisions, unregistered } = read;
  if (revisions.length + unregistered.length === 0) return unknownModel(given, headers, model);
  const lines = [
    ...revisions.flatMap((one) => [headOf(one), ...one.parts.flatMap(linesOf), ...one.agents.flatMap(agentLines)]),
    ...unregistered.flatMap((one) => [`${shortOf(one.revision)}  not registered`, ...one.agents.flatMap(agentLines)]),
  ];
  return { exit: 0, text: [...lines, found.prices].join('\n'), value: { ...found, revisions, unregistered } };
}

function headOf(one: RevisionTiers): string {
  const needs = one.needs.length > 0 ? `needed by ${one.needs.join(', ')}` : 'no need';
  const reads = `files fetched ${counted(one.uses, 'time')} in 30 days`;
  const used = `last used, moved or fetched ${new Date(one.used).toISOString()}; ${reads}`;
  return `${shortOf(one.revision)}  ${standingOf(one)}  ${needs}; ${used}${one.complete ? '' : '; files are missing'}`;
}

function linesOf(part: TierPart): string[] {
  const { tier, files, bytes, days, minimumDays, gbMonth, monthly, returning, move } = part;
  const stay = minimumDays > 0 ? `${count(days)} of at least ${counted(minimumDays, 'day')}` : counted(days, 'day');
  const price = `${dollars(monthly)} a month at ${dollars(gbMonth)} a GB`;
  const back = returning
    ? `, returns to ${returning.to} with ${returning.priority} priority${returning.expected === undefined ? '' : ` by ${new Date(returning.expected).toISOString()}`}`
    : '';
  const costs = blobTiers.map((one) => `${one} ${dollars(part.costs[one])}`).join(', ');
  const decided = move
    ? `moves to ${move.to} (${move.rule}): fees ${dollars(move.fees.total)}, of them ${dollars(move.fees.early)} for the minimum stay; saves ${dollars(move.savesMonthly)} a month`
    : 'stays';
  return [
    `  ${tier}  ${counted(files, 'file')}, ${showBytes(bytes)}, ${stay}, ${price}${back}`,
    `    ${decided}; not below ${part.floor}; idle ${counted(part.idleDays, 'day')}`,
    `    over ${counted(part.horizonDays, 'day')} with ${counted(part.expectedReads, 'read')}: ${costs}`,
  ];
}

/** Tier of a revision at an agent, the reason, and the numbers of its score. */
function agentLines({ agent, tier, residency }: AgentTier): string[] {
  if (!residency) return [`  ${agent} ${tier}`];
  const { why, score, rate, saves, bytes, leases, floor } = residency;
  const held = `${counted(leases, 'lease')}${floor === undefined ? '' : `, not below ${floor}`}`;
  return [
    `  ${agent} ${tier}: ${why}`,
    `    score ${score}: ${rate} requests a second, each ${saves} s faster, ${showBytes(bytes)}; ${held}`,
  ];
}

const standingOf = ({ stage, share, aliases }: RevisionTiers): string =>
  `${showStanding({ stage, ...(share !== undefined && { share }) })}${aliases.length > 0 ? ` (${aliases.join(', ')})` : ''}`;

const tiersOf = ({ parts, complete }: RevisionTiers): string =>
  [...new Set(parts.map(({ tier, returning }) => (returning ? `${tier} → ${returning.to}` : tier)))].join('+') +
  (complete ? '' : ', incomplete');

const bytesOf = ({ parts }: RevisionTiers): number => parts.reduce((sum, { bytes }) => sum + bytes, 0);

const count = (value: number): string => String(Math.round(value * 10) / 10);
const counted = (value: number, noun: string): string => `${count(value)} ${noun}${count(value) === '1' ? '' : 's'}`;
/** Shows small amounts with two digits: a small revision costs less than a cent. */
const dollars = (value: number): string => `$${value === 0 || value >= 1 ? value.toFixed(2) : value.toPrecision(2)}`;
const showBytes = (bytes: number): string => {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(1)} GB`;
  return bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.ceil(bytes / 1e3)} kB`;
};
