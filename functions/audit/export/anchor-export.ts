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
import { readBest } from './read-best.ts';

export const END = 'checkpoints/end.txt';

/** How long until somebody looks again. */
const SOON_MS = 500;

export async function anchorExport(desk: ExportDesk, row: ExportRow): Promise<ExportRow> {
  const { store, now } = desk;
  const { zone, year, created } = row;
  const best = await readBest(store, zone, year);
  const found = row.anchor ?? (best && (await findAnchor(desk, row, best.size)));
  if (!best || !found || best.size <= found.index) {
    if (now() - created <= limits.auditExportAnchorMs.value) return { ...row, due: now() + SOON_MS };
    return { ...row, state: 'failed', reason: 'not_logged', ended: now() };
  }
  const anchored = { ...row, anchor: found };
  const judge = await openJudge(desk.policy(row.origin));
  const judged = await judge(best.note);
  if (!judged) throw new Error(`${row.origin}: the published checkpoint is not signed by the log`);
  const enough = judged.quorum || now() - created > limits.auditExportWitnessMs.value;
  if (!enough) return { ...anchored, due: now() + SOON_MS };
  await putFile(store, row, END, best.note);
  const log = new LogFiles(store, zone, year, best.size);
  const at = row.query.from === undefined ? 0 : await findStart(log, row.query.from);
  return { ...anchored, state: 'collecting', size: best.size, at: at * TILE_WIDTH, covered: 0, due: now() };
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
