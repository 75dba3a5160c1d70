// Finds the start of a time range: the tenant's last leaf before it. Its number shows that the next one is
// the first of the range.
import { TILE_WIDTH } from '../../../shared/audit/tile.ts';
import { LogFiles } from '../log/log-files.ts';
import type { ExportContext } from './export-context.ts';
import type { ExportRow } from './export-row.ts';
import { ownLeaves } from './own-leaves.ts';

/** Looks from the bundle `from` backwards, as far as one step may; where there is no such leaf, it is the log's first. */
export async function findBegin(
  { store, now, breathe, scanBundles }: ExportContext,
  row: ExportRow,
  from: number,
): Promise<ExportRow> {
  const { back: _, ...rest } = row;
  const { zone, year, size = 0, tenant, query } = row;
  const log = new LogFiles(store, zone, year, size);
  const until = Math.max(0, from + 1 - scanBundles);
  for (let bundle = from; bundle >= until; bundle -= 1) {
    await breathe();
    const own = ownLeaves(tenant, bundle * TILE_WIDTH, await log.entries(bundle));
    const last = own.findLast(({ facts }) => facts.tseq !== undefined && facts.time < (query.from ?? 0));
    if (last) return { ...rest, begin: last.index, at: bundle * TILE_WIDTH, due: now() };
  }
  return until === 0 ? { ...rest, begin: 0, at: 0, due: now() } : { ...row, back: until - 1, due: now() };
}
