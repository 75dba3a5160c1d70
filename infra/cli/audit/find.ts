// Finds the logs and selects one.
import type { z } from 'zod';
import { formatVerifierKey, readVerifierKey } from '../../../shared/audit/note-key.ts';
import { type Answer, refused, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';
import { type LogReader, listedLogs, openReader } from './log.ts';
import { recall } from './memory.ts';

export interface FoundLog {
  readonly base: string;
  readonly vkey: string;
  readonly reader: LogReader;
  /** Opens another log of the same edge. */
  readonly open: (base: string, vkey: string) => Promise<LogReader | undefined>;
  /** Key that the edge names; the trusted key may differ. */
  readonly offered?: string;
  /** Zones omitted because no zone was given. */
  readonly others?: readonly string[];
}

type Headers = Record<string, string>;
type Listed = z.infer<typeof listedLogs>['data'][number];

/** Lists logs, the newest of each zone first. */
async function fetchLogs({ edge, zone }: Pick<Arguments, 'edge' | 'zone'>, headers: Headers) {
  const query = zone === undefined ? '' : `?zone=${encodeURIComponent(zone)}`;
  const response = await fetch(`${edge}/v1/audit/log${query}`, { headers });
  if (!response.ok) return refused(response);
  const listed = listedLogs.safeParse(await response.json().catch(() => undefined));
  if (!listed.success) return wrong('the edge answered with an unknown list of logs');
  return listed.data.data.filter((one) => zone === undefined || one.zone === zone);
}

/** Returns the newest log of each zone. */
export const newestOf = (logs: readonly Listed[]): Listed[] =>
  logs.filter((one, at) => logs.findIndex(({ zone }) => zone === one.zone) === at);

const zonesBeside = (logs: readonly Listed[], one: string): string[] => [
  ...new Set(logs.map(({ zone }) => zone).filter((zone) => zone !== one)),
];

/** Returns the zones that an answer about `one` leaves out; none when the list of logs is unavailable. */
export async function otherZones(edge: string, headers: Headers, one: string): Promise<string[]> {
  const logs = await fetchLogs({ edge, zone: undefined }, headers).catch(() => undefined);
  return !logs || 'exit' in logs ? [] : zonesBeside(logs, one);
}

export const nameOtherZones = (others: readonly string[]): string =>
  `not in here: ${others.map((zone) => `the log of ${zone} (--zone ${zone})`).join(', ')}`;

/** Returns the log of another year: same key under another name, files beside those of this year. */
function logOfYear({ vkey, prefix }: Listed, year: string): Pick<Listed, 'vkey' | 'prefix'> | undefined {
  const key = readVerifierKey(vkey);
  const LAST = /\d{4}$/;
  if (!key || !LAST.test(key.name) || !LAST.test(prefix)) return undefined;
  return { vkey: formatVerifierKey(key.name.replace(LAST, year), key.publicKey), prefix: prefix.replace(LAST, year) };
}

/**
 * Finds the log of a zone. Key: the given one, else the remembered one, else, on first use, the one that the
 * edge names.
 */
export async function findLog(
  given: Pick<Arguments, 'edge' | 'zone' | 'key'> & Partial<Pick<Arguments, 'year'>>,
  headers: Headers,
): Promise<FoundLog | Answer> {
  const { edge, zone, year, key } = given;
  if (year !== undefined && !/^\d{4}$/.test(year)) return wrong(`"${year}" is not a year of a log`);
  const logs = await fetchLogs(given, headers);
  if ('exit' in logs) return logs;
  const [newest] = logs;
  if (!newest) return wrong(zone === undefined ? 'there is no log' : `there is no log of the zone ${zone}`);
  const own = logs.filter((one) => one.zone === newest.zone);
  const named = own.find((one) => one.year === Number(year));
  // While the functions are unavailable, the edge knows only this year's log.
  const all = newest.state === 'open' || newest.state === 'closed';
  const log = year === undefined ? newest : (named ?? (all ? undefined : logOfYear(newest, year)));
  if (!log) return wrong(`there is no log of ${year}, but of ${own.map((one) => one.year).join(', ')}`);
  const base = `${edge}${log.prefix}`;
  const vkey = key ?? recall(base)?.vkey ?? log.vkey;
  const open = (base: string, vkey: string) => openReader(base, vkey, headers);
  const reader = await open(base, vkey);
  const others = zone === undefined ? zonesBeside(logs, newest.zone) : [];
  return reader ? { base, vkey, reader, open, offered: log.vkey, others } : wrong(`"${vkey}" is not the key of a log`);
}

export async function listLogs(given: Pick<Arguments, 'edge' | 'zone'>, headers: Headers): Promise<Answer> {
  const logs = await fetchLogs(given, headers);
  if ('exit' in logs) return logs;
  const text = logs.length > 0 ? logs.map(lineOf).join('\n') : 'there is none';
  return { exit: 0, text, value: { data: logs } };
}

function lineOf({ zone, year, first, size, state = 'unknown', vkey }: Listed): string {
  const sizes = size === undefined ? '' : `${first === undefined ? '' : `${first} to `}${size} entries`;
  return [`${zone}/${year}`.padEnd(12), state.padEnd(7), sizes.padEnd(24), vkey].join('  ').trimEnd();
}
