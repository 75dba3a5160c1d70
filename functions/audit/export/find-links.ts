// The leaves of other logs that show that nothing of the tenant is missing at the ends of this one: its last leaf in a log
// before it, and, of a log that had ended, its first one in a log after it. A step looks through so much and no more.
import { TILE_WIDTH } from '../../../shared/audit/tile.ts';
import { yearAfter } from '../log/find-years.ts';
import { LogFiles } from '../log/log-files.ts';
import { publishedSize } from '../log/publish-checkpoint.ts';
import { readPrevious } from '../log/read-opening.ts';
import type { ExportContext } from './export-context.ts';
import { type ExportRow, isEnded } from './export-row.ts';
import { type OwnLeaf, ownLeaves } from './own-leaves.ts';

type Seek = NonNullable<ExportRow['seek']>;

export async function findLinks(context: ExportContext, row: ExportRow): Promise<ExportRow> {
  const { seek, ...rest } = row;
  const next = seek ?? (await beginSeek(context, row));
  const due = context.now();
  if (!next) return { ...rest, linked: true, due };
  const found = await (next.side === 'after' ? lookOn : lookBack)(context, row, next);
  if (found && 'side' in found) return { ...rest, seek: found, due };
  if (!found && next.side === 'after') throw new Error('no leaf of the tenant in a later log');
  if (found && next.side === 'after') return { ...rest, after: found, due };
  return found ? { ...rest, before: found, due } : { ...rest, linked: true, due };
}

/** Selects the next link to find. */
async function beginSeek({ store }: ExportContext, row: ExportRow): Promise<Seek | undefined> {
  const { zone, year, anchor, first, query, before, after } = row;
  if (isEnded(row) && !after) {
    const next = await yearAfter(store, zone, year, anchor?.year ?? year);
    return { side: 'after', year: next ?? year + 1, bundle: 0 };
  }
  // Only where the bundle begins with the log, and something came before.
  const begins = first?.index === 0 && query.tseq_from === undefined && (row.firstTseq ?? after?.tseq ?? 1) > 1;
  return begins && !before ? backFrom(store, zone, year) : undefined;
}

async function backFrom(store: ExportContext['store'], zone: string, year: number): Promise<Seek | undefined> {
  const previous = await readPrevious(store, zone, year);
  const size = previous ? await publishedSize({ store, zone, year: previous.year }) : 0;
  if (!previous || size === 0) return undefined;
  return { side: 'before', year: previous.year, bundle: Math.ceil(size / TILE_WIDTH) - 1 };
}

/** The tenant's last leaf, in this log or in one before it; or where to go on, if there is anything left. */
async function lookBack(context: ExportContext, { zone, tenant }: ExportRow, { side, year, bundle }: Seek) {
  const { store, breathe } = context;
  const log = new LogFiles(store, zone, year, await publishedSize({ store, zone, year }));
  const until = Math.max(0, bundle + 1 - context.scanBundles);
  for (let at = bundle; at >= until; at -= 1) {
    await breathe();
    const leaf = ownLeaves(tenant, at * TILE_WIDTH, await log.entries(at)).findLast(isNumbered);
    if (leaf) return linkOf(year, leaf);
  }
  return until > 0 ? { side, year, bundle: until - 1 } : backFrom(store, zone, year);
}

/** The first leaf in this log or a later one; one exists, since the entry of the export follows. */
async function lookOn(context: ExportContext, { zone, tenant, anchor }: ExportRow, { side, year, bundle }: Seek) {
  const { store, breathe } = context;
  const size = year === anchor?.year ? (anchor.size ?? 0) : await publishedSize({ store, zone, year });
  const log = new LogFiles(store, zone, year, size);
  const until = Math.min(log.bundles, bundle + context.scanBundles);
  for (let at = bundle; at < until; at += 1) {
    await breathe();
    const leaf = ownLeaves(tenant, at * TILE_WIDTH, await log.entries(at)).find(isNumbered);
    if (leaf) return linkOf(year, leaf);
  }
  if (until < log.bundles) return { side, year, bundle: until };
  const next = await yearAfter(store, zone, year, anchor?.year ?? year);
  return next === undefined ? undefined : { side, year: next, bundle: 0 };
}

const isNumbered = ({ facts }: OwnLeaf): boolean => facts.tseq !== undefined;

const linkOf = (year: number, { index, facts }: OwnLeaf) => ({ year, index, tseq: facts.tseq as number });
