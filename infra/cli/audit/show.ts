// auricle audit tail|show|receipt: entries of a log, each with proof of inclusion.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { yearIn } from '../../../shared/audit/bundle/previous.ts';
import { openCheckpoint } from '../../../shared/audit/checkpoint.ts';
import { checkDisclosure } from '../../../shared/audit/commitment.ts';
import type { Leaf } from '../../../shared/audit/leaf.ts';
import { SEARCH_HITS_MAX } from '../../../shared/audit/privacy.ts';
import { verifyInclusion } from '../../../shared/audit/proof.ts';
import { readReceipt } from '../../../shared/audit/receipt.ts';
import { TILE_WIDTH } from '../../../shared/audit/tile.ts';
import { type Answer, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';
import { type Entry, type HashedEntry, ProvenEntries } from './entries.ts';
import type { FoundLog } from './find.ts';
import { fetchCheckpoint, Invalid } from './log.ts';
import { fetchHits } from './search.ts';

/** Entries that `audit tail` shows: as many as fit on a screen. */
const AUDIT_TAIL_ENTRIES = 20;

const openEntries = async ({ reader }: FoundLog): Promise<ProvenEntries> =>
  new ProvenEntries(reader, (await fetchCheckpoint(reader)).checkpoint);

const shownOf = ({ index, leaf }: HashedEntry): Entry => ({ index, leaf });

/** Returns the last entries, optionally of one type. Searches backwards from the end of the log. */
export async function tail(found: FoundLog, type: string | undefined): Promise<Answer> {
  const log = await openEntries(found);
  const { size } = log.checkpoint;
  const most = AUDIT_TAIL_ENTRIES;
  let entries: Entry[] = [];
  for (let bundle = log.bundles - 1; bundle >= 0 && entries.length < most; bundle -= 1) {
    const some = (await log.bundle(bundle)).map(shownOf);
    entries = [...some.filter(({ leaf }) => type === undefined || leaf?.type === type), ...entries];
  }
  const last = entries.slice(-most);
  if (last.length > 0 || type === undefined)
    return { exit: 0, text: last.map(lineOf).join('\n'), value: { size, entries: last } };
  return { exit: 1, text: `nothing of the type ${type} is in the log`, value: { size, entries: last } };
}

/** Formats one line: index, time, type, tenant, request, result. */
function lineOf({ index, leaf }: Entry): string {
  if (!leaf) return `${index}  (written by a newer version)`;
  const { t, type, tn = '-', req = '', action = '', status = '', reason = '' } = leaf as Leaf & Record<string, unknown>;
  const words = [action, status, reason].filter((part) => part !== '').join(' ');
  return [String(index).padStart(6), new Date(t.origin).toISOString(), type.padEnd(19), tn, req, words]
    .join('  ')
    .trimEnd();
}

/** Returns the zone and the year of the log that `found` reads. */
function zoneAndYear({ reader }: FoundLog): { readonly zone: string; readonly year: number | undefined } {
  const { name } = reader.verifier;
  return { zone: name.split('/').at(-2) ?? '', year: yearIn(name) };
}

/**
 * Returns the positions of a request's entries in this log, and the first position beyond the index. Returns
 * `undefined` when the caller may not search or no index exists.
 */
async function indexedPlaces(found: FoundLog, request: string, { edge }: Arguments, headers: Record<string, string>) {
  const { zone, year } = zoneAndYear(found);
  const places: number[] = [];
  for (let after: string | undefined; ; ) {
    const answers = await fetchHits(edge, { request, zone, after }, headers);
    const answer = Array.isArray(answers) ? answers.find((one) => one.zone === zone) : undefined;
    if (!answer) return undefined;
    places.push(...answer.hits.filter((hit) => hit.year === year).map(({ index }) => index));
    after = answer.next;
    if (after !== undefined) continue;
    const { indexed } = answer;
    if (places.length === 0 || indexed === undefined || year === undefined || indexed.year < year) return undefined;
    return { places, from: indexed.year > year ? Number.POSITIVE_INFINITY : indexed.index };
  }
}

interface Lookup {
  readonly found: FoundLog;
  readonly log: ProvenEntries;
  readonly given: Arguments;
  readonly headers: Record<string, string>;
}

/** Finds a request's entries through the index and the entries after it, else by a scan of all bundles. */
async function ofRequest({ found, log, given, headers }: Lookup, request: string): Promise<HashedEntry[]> {
  const known = await indexedPlaces(found, request, given, headers);
  const entries: HashedEntry[] = [];
  const { size } = log.checkpoint;
  const indexed = [];
  for (const index of known?.places ?? []) if (index < size) indexed.push(await log.at(index));
  entries.push(...indexed.filter(({ leaf }) => leaf?.req === request));
  for (let bundle = Math.floor((known?.from ?? 0) / TILE_WIDTH); bundle < log.bundles; bundle += 1)
    entries.push(...(await log.bundle(bundle)).filter(({ leaf }) => leaf?.req === request));
  const unique = new Map(entries.map((entry) => [entry.index, entry]));
  return [...unique.values()].sort((a, b) => a.index - b.index);
}

/** Returns one entry by index or all entries of a request; otherwise the error of the arguments. */
async function entriesOf(lookup: Lookup, what: string): Promise<HashedEntry[] | Answer> {
  const { log } = lookup;
  if (!/^\d+$/.test(what)) return ofRequest(lookup, what);
  const { size } = log.checkpoint;
  return Number(what) < size ? [await log.at(Number(what))] : wrong(`the log has ${size} entries`);
}

/** Hidden values of an entry by name, or the reason why the caller may not see them. */
type Opened = { readonly shown: Readonly<Record<string, unknown>> } | { readonly hidden: string };

/** Returns hidden values, each checked against the commitment in its proven leaf. */
async function openHidden(
  found: FoundLog,
  entries: readonly HashedEntry[],
  { edge }: Pick<Arguments, 'edge'>,
  headers: Record<string, string>,
): Promise<Map<number, Opened>> {
  const { zone, year } = zoneAndYear(found);
  const hiding = new Map(entries.flatMap(({ index, leaf }) => (leaf?.sd ? [[index, leaf.sd] as const] : [])));
  const opened = new Map<number, Opened>();
  for (const some of chunksOf([...hiding.keys()], SEARCH_HITS_MAX)) {
    const query = { zone, year: String(year ?? ''), index: some.join(','), disclose: 'true' };
    const answers = await fetchHits(edge, query, headers);
    const why = Array.isArray(answers) ? 'not for this caller' : answers.text;
    for (const index of some) opened.set(index, { hidden: why });
    for (const { index, disclosed = [], erased } of Array.isArray(answers) ? answers.flatMap(({ hits }) => hits) : []) {
      const read = disclosed.flatMap((one) => checkDisclosure(one, hiding.get(index) ?? {}) ?? []);
      if (erased) opened.set(index, { hidden: 'erased' });
      else if (read.length > 0)
        opened.set(index, { shown: Object.fromEntries(read.map((one) => [one.name, one.value])) });
    }
  }
  return opened;
}

const chunksOf = (all: readonly number[], size: number): number[][] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size));

export async function show(
  found: FoundLog,
  what: string,
  given: Arguments,
  headers: Record<string, string>,
): Promise<Answer> {
  const log = await openEntries(found);
  const shown = await entriesOf({ found, log, given, headers }, what);
  if (!Array.isArray(shown)) return shown;
  const { size } = log.checkpoint;
  const opened = await openHidden(found, shown, given, headers);
  const entries = shown.map((entry) => ({ ...shownOf(entry), ...opened.get(entry.index) }));
  const text = entries.map((entry) => JSON.stringify(entry, undefined, 2)).join('\n');
  if (entries.length > 0) return { exit: 0, text, value: { size, entries } };
  return { exit: 1, text: `nothing of the request ${what} is in the log`, value: { size, entries } };
}

/** Fetches and verifies the receipts of entries; with `--out` writes each with its entry, for audit verify --receipt. */
export async function receipts(
  found: FoundLog,
  what: string,
  given: Arguments,
  headers: Record<string, string>,
): Promise<Answer> {
  const entries = await entriesOf({ found, log: await openEntries(found), given, headers }, what);
  if (!Array.isArray(entries)) return entries;
  if (entries.length === 0) return { exit: 1, text: `nothing of the request ${what} is in the log`, value: [] };
  const made: { index: number; receipt: string }[] = [];
  for (const { index, hash, bytes } of entries) {
    const fetched = await found.reader.fetch(`receipt/${index}`);
    const receipt = readReceipt(fetched);
    const note = receipt?.index === index ? new TextEncoder().encode(receipt.checkpoint) : new Uint8Array();
    const signed = await openCheckpoint(note, found.reader.verifier);
    if (!receipt || !signed || !verifyInclusion({ index, leaf: hash, proof: receipt.proof }, signed))
      throw new Invalid(`the receipt of ${index} is malformed`);
    made.push({ index, receipt: new TextDecoder().decode(fetched) });
    if (given.out === undefined) continue;
    const { zone, year } = zoneAndYear(found);
    const name = path.join(given.out, `${zone}-${year}-${index}`);
    mkdirSync(given.out, { recursive: true });
    writeFileSync(`${name}.json`, bytes);
    writeFileSync(`${name}.tlog-proof`, fetched);
  }
  return { exit: 0, text: made.map(({ receipt }) => receipt.trimEnd()).join('\n\n'), value: made };
}
