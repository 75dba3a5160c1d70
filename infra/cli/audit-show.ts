// auricle audit tail|show|receipt: entries of a log as they stand there, each shown to be in it.
import { z } from 'zod';
import { yearIn } from '../../shared/audit/bundle/previous.ts';
import { openCheckpoint } from '../../shared/audit/checkpoint.ts';
import { checkDisclosure } from '../../shared/audit/commitment.ts';
import type { Leaf } from '../../shared/audit/leaf.ts';
import { verifyInclusion } from '../../shared/audit/proof.ts';
import { readReceipt } from '../../shared/audit/receipt.ts';
import { TILE_WIDTH } from '../../shared/audit/tile.ts';
import { limits } from '../../shared/limits.ts';
import { type Answer, refused, wrong } from './answer.ts';
import { type Entry, type HashedEntry, ProvenEntries } from './audit-entries.ts';
import type { Found } from './audit-find.ts';
import { fetchCheckpoint, Invalid } from './audit-log.ts';
import { searchAudit } from './audit-search.ts';
import type { Arguments } from './options.ts';

const openEntries = async ({ reader }: Found): Promise<ProvenEntries> =>
  new ProvenEntries(reader, (await fetchCheckpoint(reader)).checkpoint);

const shownOf = ({ index, leaf }: HashedEntry): Entry => ({ index, leaf });

/** The last ones, or the last ones of a type: looked for from the end of the log on. */
export async function tail(found: Found, type: string | undefined): Promise<Answer> {
  const log = await openEntries(found);
  const { size } = log.checkpoint;
  const most = limits.auditTailEntries.value;
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

/** One line: where, when, what, for whom, how. */
function lineOf({ index, leaf }: Entry): string {
  if (!leaf) return `${index}  (written by a newer version)`;
  const { t, type, tn = '-', req = '', action = '', status = '', reason = '' } = leaf as Leaf & Record<string, unknown>;
  const said = [action, status, reason].filter((part) => part !== '').join(' ');
  return [String(index).padStart(6), new Date(t.origin).toISOString(), type.padEnd(19), tn, req, said]
    .join('  ')
    .trimEnd();
}

/** What a search says: where the request's entries are, and from where on the index does not know yet. */
const searched = z.object({
  hits: z.array(z.object({ year: z.number(), index: z.number() })),
  indexed: z.record(z.string(), z.object({ year: z.number(), index: z.number() }).optional()),
  next: z.record(z.string(), z.string().optional()),
});

/** Places of a request's entries in this log by the index; `undefined` where nobody looks for us, or nothing is found. */
async function indexedPlaces(found: Found, request: string, given: Arguments, headers: Record<string, string>) {
  const { name } = found.reader.verifier;
  const [zone, year] = [name.split('/').at(-2) ?? '', yearIn(name)];
  const places: number[] = [];
  for (let after: string | undefined; ; ) {
    const query = { edge: given.edge, operands: given.operands, request, zone, ...(after !== undefined && { after }) };
    const { exit, text, value } = await searchAudit(query as Arguments, headers, async () => found);
    if (exit === 40) throw new Invalid(text);
    const parsed = searched.safeParse(value);
    if (!parsed.success) return undefined;
    const { hits, indexed, next } = parsed.data;
    places.push(...hits.filter((hit) => hit.year === year).map(({ index }) => index));
    after = next[zone];
    if (after !== undefined) continue;
    const upTo = indexed[zone];
    if (places.length === 0 || upTo === undefined || year === undefined || upTo.year < year) return undefined;
    return { places, from: upTo.year > year ? Number.POSITIVE_INFINITY : upTo.index };
  }
}

/** A request's entries, by the index and by what came after it; where that finds none, bundle by bundle from the first. */
async function ofRequest(
  found: Found,
  log: ProvenEntries,
  request: string,
  given: Arguments,
  headers: Record<string, string>,
): Promise<HashedEntry[]> {
  const known = await indexedPlaces(found, request, given, headers);
  const entries: HashedEntry[] = [];
  const { size } = log.checkpoint;
  for (const index of known?.places ?? []) if (index < size) entries.push(await log.at(index));
  for (let bundle = Math.floor((known?.from ?? 0) / TILE_WIDTH); bundle < log.bundles; bundle += 1)
    entries.push(...(await log.bundle(bundle)).filter(({ leaf }) => leaf?.req === request));
  const unique = new Map(entries.map((entry) => [entry.index, entry]));
  return [...unique.values()].sort((a, b) => a.index - b.index);
}

/** One entry by its place, or all of a request; or what is wrong with what was asked for. */
async function entriesOf(
  found: Found,
  log: ProvenEntries,
  what: string,
  given: Arguments,
  headers: Record<string, string>,
): Promise<HashedEntry[] | Answer> {
  if (!/^\d+$/.test(what)) return ofRequest(found, log, what, given, headers);
  const { size } = log.checkpoint;
  return Number(what) < size ? [await log.at(Number(what))] : wrong(`the log has ${size} entries`);
}

const opened = z.object({
  data: z.array(
    z.object({
      hits: z.array(
        z.object({ index: z.number(), disclosed: z.array(z.string()).optional(), erased: z.literal(true).optional() }),
      ),
    }),
  ),
});

/** Hidden values of an entry by name, or the reason why the caller may not see them. */
type Opened = { readonly shown: Readonly<Record<string, unknown>> } | { readonly hidden: string };

/** Values that entries hide, each checked against the commitment in its proven leaf. */
async function openHidden(
  { reader }: Found,
  entries: readonly HashedEntry[],
  { edge }: Pick<Arguments, 'edge'>,
  headers: Record<string, string>,
): Promise<Map<number, Opened>> {
  const { name } = reader.verifier;
  const [zone = '', year = ''] = [name.split('/').at(-2), String(yearIn(name) ?? '')];
  const hiding = new Map(entries.flatMap(({ index, leaf }) => (leaf?.sd ? [[index, leaf.sd] as const] : [])));
  const found = new Map<number, Opened>();
  for (const some of chunksOf([...hiding.keys()], limits.auditSearchHits.value)) {
    const query = new URLSearchParams({ zone, year, index: some.join(','), disclose: 'true' });
    const response = await fetch(`${edge}/v1/audit/search?${query}`, { headers });
    const why = response.ok ? 'not for this caller' : (await refused(response)).text;
    for (const index of some) found.set(index, { hidden: why });
    const { data } = opened.safeParse(response.ok ? await response.json() : undefined);
    for (const { index, disclosed = [], erased } of data?.data.flatMap(({ hits }) => hits) ?? []) {
      const read = disclosed.flatMap((one) => checkDisclosure(one, hiding.get(index) ?? {}) ?? []);
      if (erased) found.set(index, { hidden: 'erased' });
      else if (read.length > 0)
        found.set(index, { shown: Object.fromEntries(read.map((one) => [one.name, one.value])) });
    }
  }
  return found;
}

const chunksOf = (all: readonly number[], size: number): number[][] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size));

export async function show(
  found: Found,
  what: string,
  given: Arguments,
  headers: Record<string, string>,
): Promise<Answer> {
  const log = await openEntries(found);
  const shown = await entriesOf(found, log, what, given, headers);
  if (!Array.isArray(shown)) return shown;
  const { size } = log.checkpoint;
  const opened = await openHidden(found, shown, given, headers);
  const entries = shown.map((entry) => ({ ...shownOf(entry), ...opened.get(entry.index) }));
  const text = entries.map((entry) => JSON.stringify(entry, undefined, 2)).join('\n');
  if (entries.length > 0) return { exit: 0, text, value: { size, entries } };
  return { exit: 1, text: `nothing of the request ${what} is in the log`, value: { size, entries } };
}

export async function receipts(
  found: Found,
  what: string,
  given: Arguments,
  headers: Record<string, string>,
): Promise<Answer> {
  const entries = await entriesOf(found, await openEntries(found), what, given, headers);
  if (!Array.isArray(entries)) return entries;
  if (entries.length === 0) return { exit: 1, text: `nothing of the request ${what} is in the log`, value: [] };
  const made: { index: number; receipt: string }[] = [];
  for (const { index, hash } of entries) {
    const bytes = await found.reader.fetch(`receipt/${index}`);
    const receipt = readReceipt(bytes);
    const note = receipt?.index === index ? new TextEncoder().encode(receipt.checkpoint) : new Uint8Array();
    const signed = await openCheckpoint(note, found.reader.verifier);
    if (!receipt || !signed || !verifyInclusion(index, signed.size, hash, receipt.proof, signed.root))
      throw new Invalid(`the receipt of ${index} is none`);
    made.push({ index, receipt: new TextDecoder().decode(bytes) });
  }
  return { exit: 0, text: made.map(({ receipt }) => receipt.trimEnd()).join('\n\n'), value: made };
}
