// Files of a bundle that tie its log to others: `shared/audit/verify/check-links.ts` says how they are read.
import type { FileDigest, LinkFiles, Manifest } from '../../../shared/audit/bundle/manifest.ts';
import { TILE_WIDTH } from '../../../shared/audit/tile.ts';
import { yearsBetween } from '../log/find-years.ts';
import { LogFiles } from '../log/log-files.ts';
import { receiptsUnder } from '../log/make-receipt.ts';
import { readPrevious } from '../log/read-opening.ts';
import { LATER } from './anchor-export.ts';
import type { ExportContext } from './export-context.ts';
import { putFile, readFile } from './export-files.ts';
import { type ExportRow, isEnded } from './export-row.ts';
import { readPublished } from './read-published.ts';

interface Place {
  readonly year: number;
  readonly index: number;
  /** Purpose, part of the file name. */
  readonly purpose: 'opening' | 'before' | 'after' | 'export';
}

/** `undefined` where nothing ties it, and nothing has to. */
export async function putLinks(
  context: ExportContext,
  row: ExportRow,
): Promise<{ readonly links: Manifest['links']; readonly files: readonly FileDigest[] }> {
  const [before, after] = [await placesBefore(context, row), await placesAfter(context, row)];
  const files: FileDigest[] = [];
  const put = async (places: readonly Place[]): Promise<LinkFiles[]> => {
    const links: LinkFiles[] = [];
    for (const place of places) links.push(await putLink(context, row, place, files));
    return links;
  };
  if (before.length + after.length === 0) return { links: undefined, files };
  return { links: { before: await put(before), after: await put(after) }, files };
}

/** From this log back to the one with the leaf: the first leaf of each between them names the one before it. */
async function placesBefore({ store }: ExportContext, { zone, year, before }: ExportRow): Promise<Place[]> {
  if (!before) return [];
  const places: Place[] = [];
  for (let at = await readPrevious(store, zone, year); at && at.year > before.year; ) {
    places.push({ year: at.year, index: 0, purpose: 'opening' });
    at = await readPrevious(store, zone, at.year);
  }
  return [...places, { ...before, purpose: 'before' }];
}

/** The logs after this one, up to the log with the leaf of the export. */
async function placesAfter({ store }: ExportContext, row: ExportRow): Promise<Place[]> {
  const { zone, year, anchor, after } = row;
  if (!isEnded(row) || !anchor || !after) return [];
  const until = anchor.year ?? year;
  const years = await yearsBetween(store, zone, year + 1, until);
  const same = after.year === until && after.index === anchor.index;
  return years.flatMap((one): Place[] => [
    { year: one, index: 0, purpose: 'opening' },
    ...(one === after.year && !same ? [{ ...after, purpose: 'after' } as const] : []),
    ...(one === until ? [{ year: one, index: anchor.index, purpose: 'export' } as const] : []),
  ]);
}

async function putLink(
  { store }: ExportContext,
  row: ExportRow,
  { year, index, purpose }: Place,
  files: FileDigest[],
): Promise<LinkFiles> {
  const { zone, anchor } = row;
  const note = year === anchor?.year ? await readFile(store, row, LATER) : await lastNote(store, zone, year);
  if (!note) throw new Error(`${zone}/${year}: its checkpoint is gone`);
  const receipts = receiptsUnder(store, zone, year, note);
  const bundle = Math.floor(index / TILE_WIDTH);
  const entries = await new LogFiles(store, zone, year, receipts.size).entries(bundle);
  const [entry, receipt] = [`links/${year}/${purpose}.json`, `links/${year}/${purpose}.tlog-proof`];
  files.push(
    await putFile(store, row, entry, entries[index - bundle * TILE_WIDTH] as Uint8Array),
    await putFile(store, row, receipt, new TextEncoder().encode(await receipts.make(index))),
  );
  return { entry, receipt };
}

/** Returns the longest checkpoint of an ended log, preferably one with witnesses. */
async function lastNote(store: ExportContext['store'], zone: string, year: number): Promise<Uint8Array | undefined> {
  const published = await readPublished(store, zone, year);
  const longest = Math.max(...published.map(({ size }) => size));
  return published.find(({ size }) => size === longest)?.note;
}
