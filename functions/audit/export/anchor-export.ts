// Waits until the log has the leaf that says that the export is made, in a published checkpoint: that is the one that covers
// the bundle. If witnesses are wanted, it waits for those, too, but not for ever.
import { openJudge } from '../../../shared/audit/judge.ts';
import { TILE_WIDTH } from '../../../shared/audit/tile.ts';
import { limits } from '../../../shared/limits.ts';
import type { ExportDesk } from './export-desk.ts';
import { putFile } from './export-files.ts';
import type { ExportRow } from './export-row.ts';
import { findStart } from './find-start.ts';
import { LogFiles } from './log-files.ts';
import { ownLeaves } from './own-leaves.ts';
import { type Published, readPublished } from './read-published.ts';

export const END = 'checkpoints/end.txt';

/** How long until somebody looks again. */
const SOON_MS = 500;

export async function anchorExport(desk: ExportDesk, row: ExportRow): Promise<ExportRow> {
  const { store, now } = desk;
  const { zone, year, created } = row;
  const published = await readPublished(store, zone, year);
  const longest = Math.max(0, ...published.map(({ size }) => size));
  const anchor = row.anchor ?? (await findAnchor(desk, row, longest));
  if (!anchor) {
    if (now() - created <= limits.auditExportAnchorMs.value) return { ...row, due: now() + SOON_MS };
    return { ...row, state: 'failed', reason: 'not_logged', ended: now() };
  }
  const head = await chooseHead(desk, row, published, anchor.index);
  if (!head) return { ...row, anchor, due: now() + SOON_MS };
  await putFile(store, row, END, head.note);
  const log = new LogFiles(store, zone, year, head.size);
  const { from } = row.query;
  const back = from === undefined ? {} : { back: await findStart(log, from) };
  return { ...row, anchor, ...back, state: 'collecting', size: head.size, at: 0, covered: 0, due: now() };
}

/** One that enough witnesses have signed; after a while, one that they have not. */
async function chooseHead(
  { policy, now }: ExportDesk,
  { origin, created }: ExportRow,
  published: readonly Published[],
  anchor: number,
): Promise<Published | undefined> {
  const judge = await openJudge(policy(origin));
  const late = now() - created > limits.auditExportWitnessMs.value;
  let chosen: Published | undefined;
  for (const head of published.filter(({ size }) => size > anchor)) {
    const judged = await judge(head.note);
    if (!judged) throw new Error(`${origin}: a published checkpoint is not signed by the log`);
    if (judged.quorum) return head;
    chosen = head;
  }
  return late ? chosen : undefined;
}

async function findAnchor(
  { store }: ExportDesk,
  { zone, year, tenant, event, at }: ExportRow,
  size: number,
): Promise<{ index: number; tseq: number } | undefined> {
  const log = new LogFiles(store, zone, year, size);
  for (let bundle = Math.floor(at / TILE_WIDTH); bundle < log.bundles; bundle += 1) {
    const own = ownLeaves(tenant, bundle * TILE_WIDTH, await log.entries(bundle));
    const leaf = own.find(({ facts }) => facts.id === event);
    if (leaf) return { index: leaf.index, tseq: leaf.facts.tseq as number };
  }
  return undefined;
}
