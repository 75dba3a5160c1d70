// An export: one row of the table `exports`, in the partition of its zone. Each step reads it, does
// repeatable work, and replaces it unless another process has.
import { z } from 'zod';
import { type ExportStatus, exportQuery } from '../../../shared/audit/bundle/contract.ts';
import { formatNames } from '../../../shared/audit/derived/formats.ts';
import { type Change, endOf, type Row, type Rows } from '../../store/rows.ts';
import { digits } from '../log/log-names.ts';

/** Running exports of a tenant in a zone: each reads the log. */
export const EXPORTS_RUNNING_MAX = 4;
/**
 * Life of an export's files, and of its row after them: a week, since they disclose private fields and can be
 * made again.
 */
export const EXPORT_STORED_MS = 7 * 86_400_000;
/**
 * Exports of a tenant that are listed, newest first, and of a zone that one tick advances, longest due first.
 */
export const EXPORT_ROWS_MAX = 100;

/** A leaf of another year's log. */
const link = z.object({ year: z.number().int(), index: z.number().int(), tseq: z.number().int() });

const exportRow = z.object({
  v: z.literal(1),
  id: z.string(),
  tenant: z.string(),
  zone: z.string(),
  year: z.number().int(),
  origin: z.string(),
  /**
   * `asked`: the report to the log has no answer yet. `anchoring`: the log does not have the export's leaf
   * yet. `collecting`: part after part. The other states are final.
   */
  state: z.enum(['asked', 'anchoring', 'collecting', 'done', 'failed', 'expired']),
  created: z.number().int(),
  request: z.string(),
  purpose: z.string(),
  formats: z.array(z.enum(formatNames)),
  redaction: z.string(),
  query: exportQuery,
  /**
   * Sizes of checkpoints that the bundle has, besides the last: the reader's, or the newest at the time of
   * the request.
   */
  start: z.number().int().optional(),
  /** Id of the event `export.create`. */
  event: z.string().optional(),
  /** Start of the search: year and index. */
  told: z.object({ year: z.number().int(), at: z.number().int() }).optional(),
  /** Position. `year`: in the log of a later year, with the size that the bundle shows of it. */
  anchor: z
    .object({
      index: z.number().int(),
      tseq: z.number().int(),
      year: z.number().int().optional(),
      size: z.number().int().optional(),
    })
    .optional(),
  /** Origin of the log whose checkpoint covers it. */
  size: z.number().int().optional(),
  /** Next bundle of entries of the backward search for the first entry of a time range. */
  back: z.number().int().optional(),
  /** Position of the tenant's last leaf before the time range, or the start of the log. */
  begin: z.number().int().optional(),
  /** Entries before this one were looked at. */
  at: z.number().int(),
  /** Leaves before this one are covered by entries and hashes of the parts that are made. */
  covered: z.number().int(),
  parts: z.number().int(),
  first: z.object({ index: z.number().int(), tseq: z.number().int().optional() }).optional(),
  /** Number of the tenant's first leaf in it. */
  firstTseq: z.number().int().optional(),
  /** Number of its last one so far. */
  lastTseq: z.number().int().optional(),
  /** The tenant's last leaf in a log before this one, and its first in one after it: `find-links.ts`. */
  before: link.optional(),
  after: link.optional(),
  /** Next bundle of entries of the search. */
  seek: z.object({ side: z.enum(['before', 'after']), year: z.number().int(), bundle: z.number().int() }).optional(),
  /** Nothing is looked for any more. */
  linked: z.boolean().optional(),
  entries: z.number().int(),
  disclosed: z.number().int(),
  erased: z.number().int(),
  /** Files of a finished export. */
  bytes: z.number().int().optional(),
  ended: z.number().int().optional(),
  reason: z.string().optional(),
  /** Number of restarts by erasures; each attempt has its own folder. */
  restarts: z.number().int().optional(),
  /** Slot of the tenant that it occupies while it is made. */
  place: z.number().int().optional(),
  /** Failures in a row, and when to try again. */
  tries: z.number().int(),
  due: z.number().int(),
});
export type ExportRow = z.infer<typeof exportRow>;

/** Reports whether its log had ended before the request. */
export const isEnded = ({ anchor, year }: Pick<ExportRow, 'anchor' | 'year'>): boolean =>
  anchor?.year !== undefined && anchor.year > year;

/** The last entry of it: the leaf `export.create`, or the log's own last. */
export function lastOf(row: Pick<ExportRow, 'anchor' | 'year' | 'size'>): number {
  const { anchor, size } = row;
  if (!anchor || size === undefined) throw new Error('an export without an anchor');
  return isEnded(row) ? size - 1 : anchor.index;
}

export interface StoredExport {
  readonly row: ExportRow;
  readonly version: string;
}

const UUID_CHARACTERS = 36;

/** The newest come first: an id ends with a UUID of version 7, which begins with a time. */
function keyOf({ tenant, id }: Pick<ExportRow, 'tenant' | 'id'>): string {
  const [, high = '0', low = '0'] = /^([0-9a-f]{8})-([0-9a-f]{4})-/.exec(id.slice(-UUID_CHARACTERS)) ?? [];
  return `${ageOf(tenant, Number.parseInt(`${high}${low}`, 16))}!${id}`;
}
/** Prefix of keys of exports of that time. */
const ageOf = (tenant: string, time: number): string =>
  `x!${tenant}!${(2 ** 48 - 1 - time).toString(16).padStart(12, '0')}`;
/** Index of the timer, ordered by due time. */
const dueKeyOf = (row: ExportRow): string => `o!${digits(dueOf(row))}!${row.tenant}!${row.id}`;
/** Slot of an unfinished export; storage refuses a second row with its key. */
const workKeyOf = ({ tenant, place }: Pick<ExportRow, 'tenant' | 'place'>): string => `w!${tenant}!${place}`;
export const partitionOf = (zone: string): string => zone;

const isWork = ({ state }: ExportRow): boolean => state === 'asked' || state === 'anchoring' || state === 'collecting';

/** Time of the next step. A finished export is forgotten after a while. */
export function dueOf({ state, ended, created, due }: ExportRow): number {
  const keep = EXPORT_STORED_MS;
  if (state === 'failed') return (ended ?? created) + keep;
  return state === 'expired' ? (ended ?? created) + 2 * keep : due;
}

const read = ({ value, version }: Row): StoredExport => ({ row: exportRow.parse(value), version });

export async function findExport(
  rows: Rows,
  zone: string,
  tenant: string,
  id: string,
): Promise<StoredExport | undefined> {
  const found = await rows.read(partitionOf(zone), keyOf({ tenant, id }));
  return found && read(found);
}

/** The newest first. */
export async function listExports(rows: Rows, zone: string, tenant: string): Promise<ExportRow[]> {
  const prefix = `x!${tenant}!`;
  const found = await rows.scan(partitionOf(zone), prefix, endOf(prefix), EXPORT_ROWS_MAX);
  return found.map((one) => read(one).row);
}

/** Returns exports requested since a time, newest first, up to a limit. */
export async function listSince(
  rows: Rows,
  { zone, tenant }: Pick<ExportRow, 'zone' | 'tenant'>,
  from: number,
  most: number,
): Promise<ExportRow[]> {
  const found = await rows.scan(partitionOf(zone), `x!${tenant}!`, endOf(ageOf(tenant, from)), most);
  return found.map((one) => read(one).row);
}

/** All exports of a tenant in a zone, page by page. */
export async function* everyExport(rows: Rows, zone: string, tenant: string): AsyncGenerator<StoredExport> {
  const prefix = `x!${tenant}!`;
  for (let from = prefix; ; ) {
    const found = await rows.scan(partitionOf(zone), from, endOf(prefix), EXPORT_ROWS_MAX);
    yield* found.map(read);
    const last = found.at(-1);
    if (!last || found.length < EXPORT_ROWS_MAX) return;
    from = `${last.key}!`;
  }
}

/** `false` when all places of the tenant are taken, or its id. */
export async function insertExport(rows: Rows, row: ExportRow): Promise<boolean> {
  const partition = partitionOf(row.zone);
  const insert = (one: ExportRow): Promise<boolean> =>
    rows.commit(partition, [
      { type: 'insert', key: keyOf(one), value: one },
      { type: 'insert', key: dueKeyOf(one), value: {} },
      ...(isWork(one) ? [{ type: 'insert', key: workKeyOf(one), value: { id: one.id } } as const] : []),
    ]);
  if (!isWork(row)) return insert(row);
  const { tenant } = row;
  for (let place = 0; place < EXPORTS_RUNNING_MAX; place += 1) {
    // A read is cheaper than a write, and most concurrent requests find the slot taken.
    if (await rows.read(partition, workKeyOf({ tenant, place }))) continue;
    if (await insert({ ...row, place })) return true;
  }
  return false;
}

/** Returns `false` after a lost race, `undefined` when the row is gone. */
export function replaceExport(rows: Rows, row: ExportRow | undefined, was: StoredExport): Promise<boolean> {
  const { row: before, version } = was;
  const changes: Change[] = row
    ? [{ type: 'replace', key: keyOf(row), value: row, version }]
    : [{ type: 'remove', key: keyOf(before) }];
  if (!row || dueKeyOf(row) !== dueKeyOf(before)) {
    changes.push({ type: 'remove', key: dueKeyOf(before) });
    if (row) changes.push({ type: 'insert', key: dueKeyOf(row), value: {} });
  }
  if (isWork(before) && before.place !== undefined && !(row && isWork(row)))
    changes.push({ type: 'remove', key: workKeyOf(before) });
  return rows.commit(partitionOf(before.zone), changes);
}

/** Exports of a zone that are due, those that are due for longest. */
export async function listDue(rows: Rows, zone: string, now: number): Promise<{ tenant: string; id: string }[]> {
  const until = `o!${digits(now + 1)}`;
  const found = await rows.scan(partitionOf(zone), 'o!', until, EXPORT_ROWS_MAX);
  return found.map(({ key }) => {
    const [, , tenant = '', id = ''] = key.split('!');
    return { tenant, id };
  });
}

/** Exports of a tenant that are being made, up to as many as there may be. */
const publicState = {
  asked: 'accepted',
  anchoring: 'accepted',
  collecting: 'running',
  done: 'done',
  failed: 'failed',
  expired: 'expired',
} as const satisfies Record<ExportRow['state'], ExportStatus['state']>;

export function statusOf(row: ExportRow, files?: ExportStatus['files']): ExportStatus {
  const { id, tenant, zone, state, created, purpose, redaction, formats, entries, at, size, reason, ended } = row;
  const expires = ended !== undefined && state === 'done' ? ended + EXPORT_STORED_MS : undefined;
  return {
    ...{ id, tenant, zone, state: publicState[state], created: new Date(created).toISOString() },
    ...{ purpose, redaction, formats, entries, scanned: state === 'asked' || state === 'anchoring' ? 0 : at },
    ...(size !== undefined && { size }),
    ...(reason !== undefined && { reason }),
    ...(expires !== undefined && { expires: new Date(expires).toISOString() }),
    ...(files && { files }),
  };
}
