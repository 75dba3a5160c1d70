// Waits until a published checkpoint covers the leaf of the export. That checkpoint covers the bundle; for an ended log
// its last checkpoint does, and the other proves that no entry is between. Waits a bounded time for witnesses, if the
// policy requires any.
import { originOfLog } from '../../../shared/audit/delivery.ts';
import { latestAt, openJudge } from '../../../shared/audit/judge.ts';
import { TILE_WIDTH } from '../../../shared/audit/tile.ts';
import { EXPORT_ANCHOR_MS } from '../../../shared/audit/verify/numbers.ts';
import { newestState } from '../log/acknowledge.ts';
import { LogFiles } from '../log/log-files.ts';
import { publishedSize } from '../log/publish-checkpoint.ts';
import type { ExportContext } from './export-context.ts';
import { putFile } from './export-files.ts';
import { type ExportRow, isEnded } from './export-row.ts';
import { findStart } from './find-start.ts';
import { ownLeaves } from './own-leaves.ts';
import { type Published, readPublished } from './read-published.ts';

/** Pause between polls for an export's entry in the log and its cosignatures. */
const EXPORT_ANCHOR_POLL_MS = 500;
/** Longest wait of an export for witnesses of its last checkpoint; then it is made without. */
const EXPORT_WITNESS_MS = 15_000;

export const END = 'checkpoints/end.txt';
/** The checkpoint that covers the anchor in a later log; what of it goes into the bundle is in receipts. */
export const LATER = '.job/later.txt';

export async function anchorExport(context: ExportContext, requested: ExportRow): Promise<ExportRow> {
  const { store, now } = context;
  const found = requested.anchor ?? (await findAnchor(context, requested));
  if (!found) {
    if (now() - requested.created <= EXPORT_ANCHOR_MS) return { ...requested, due: now() + EXPORT_ANCHOR_POLL_MS };
    return { ...requested, state: 'failed', reason: 'not_logged', ended: now() };
  }
  const row = movedOn(context, { ...requested, anchor: found });
  if (!row) return { ...requested, state: 'failed', reason: 'year_ended', ended: now() };
  const { zone, year, query } = row;
  const ended = isEnded(row);
  const last = ended ? (await publishedSize({ store, zone, year })) - 1 : found.index;
  const head = await chooseHead(context, row, year, last);
  const later = ended ? await chooseHead(context, row, found.year ?? year, found.index) : undefined;
  if (!head || (ended && !later)) return { ...row, due: now() + EXPORT_ANCHOR_POLL_MS };
  await putFile(store, row, END, head.note);
  if (later) await putFile(store, row, LATER, later.note);
  const log = new LogFiles(store, zone, year, head.size);
  const back = query.from === undefined ? {} : { back: await findStart(log, query.from) };
  const anchor = { ...found, ...(later && { size: later.size }) };
  return { ...row, anchor, ...back, state: 'collecting', size: head.size, at: 0, covered: 0, due: now() };
}

/**
 * Anchors in the newest log a query that names no year, since a year may have ended meanwhile. `undefined`:
 * the query is about the log that ended.
 */
function movedOn({ base }: ExportContext, row: ExportRow): ExportRow | undefined {
  const { query, zone, anchor } = row;
  const year = anchor?.year;
  if (query.year !== undefined || year === undefined || year === row.year) return row;
  if (query.from !== undefined && query.from < Date.UTC(year)) return undefined;
  const { start: _, ...rest } = row;
  return { ...rest, year, origin: originOfLog(base, zone, year) };
}

/** Returns a checkpoint that covers the entry: one with enough witnesses or, after a while, any. */
async function chooseHead(
  { store, policy, base, now }: ExportContext,
  { zone, created }: ExportRow,
  year: number,
  entry: number,
): Promise<Published | undefined> {
  const origin = originOfLog(base, zone, year);
  const judge = await openJudge(policy(origin));
  const late = now() - created > EXPORT_WITNESS_MS;
  let chosen: Published | undefined;
  for (const head of (await readPublished(store, zone, year)).filter(({ size }) => size > entry)) {
    const judged = await judge(head.note, latestAt(now()));
    if (!judged) throw new Error(`${origin}: a published checkpoint is not signed by the log`);
    if (judged.quorum) return head;
    chosen = head;
  }
  return late ? chosen : undefined;
}

async function findAnchor(
  { store, breathe }: ExportContext,
  row: ExportRow,
): Promise<{ index: number; tseq: number; year: number } | undefined> {
  const { zone, tenant, event } = row;
  const end = row.told ?? row;
  const newest = (await newestState(store, zone))?.year ?? end.year;
  for (let year = end.year; year <= newest; year += 1) {
    const log = new LogFiles(store, zone, year, await publishedSize({ store, zone, year }));
    const first = year === end.year ? Math.floor(end.at / TILE_WIDTH) : 0;
    for (let bundle = first; bundle < log.bundles; bundle += 1) {
      await breathe();
      const own = ownLeaves(tenant, bundle * TILE_WIDTH, await log.entries(bundle));
      const leaf = own.find(({ facts }) => facts.id === event);
      if (leaf) return { index: leaf.index, tseq: leaf.facts.tseq as number, year };
    }
  }
  return undefined;
}
