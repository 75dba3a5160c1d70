// What is known of an export: one row of the table `exports`, in the partition of its zone. Every step reads it, does
// something that can be done again, and replaces it if nobody else was faster.
import { z } from 'zod';
import { type ExportStatus, exportQuery } from '../../../shared/audit/bundle/contract.ts';
import { formatNames } from '../../../shared/audit/derived/formats.ts';
import { limits } from '../../../shared/limits.ts';
import { endOf, type Row, type Rows } from '../../store/rows.ts';

export const exportRow = z.object({
  v: z.literal(1),
  id: z.string(),
  tenant: z.string(),
  zone: z.string(),
  year: z.number().int(),
  origin: z.string(),
  /**
   * `asked`: it is not known whether the log was told. `anchoring`: until the log has the leaf that says so. `collecting`:
   * part after part. The rest is over.
   */
  state: z.enum(['asked', 'anchoring', 'collecting', 'done', 'failed', 'expired']),
  created: z.number().int(),
  request: z.string(),
  purpose: z.string(),
  formats: z.array(z.enum(formatNames)),
  redaction: z.string(),
  query: exportQuery,
  /** Sizes of checkpoints that the bundle has, besides the last: the reader's, or the newest when it was asked for. */
  start: z.number().int().optional(),
  /** Id of the event that says that it is made. */
  event: z.string().optional(),
  anchor: z.object({ index: z.number().int(), tseq: z.number().int() }).optional(),
  /** Of the log whose checkpoint covers it. */
  size: z.number().int().optional(),
  /** Of one from a time on, until it is known where it begins: the bundle of entries that is looked through next, backwards. */
  back: z.number().int().optional(),
  /** Of one from a time on: place of the tenant's last leaf before that, or where the log begins. */
  begin: z.number().int().optional(),
  /** Entries before this one were looked at. While anchoring, of those that may be the anchor. */
  at: z.number().int(),
  /** Leaves before this one are covered by entries and hashes of the parts that are made. */
  covered: z.number().int(),
  parts: z.number().int(),
  first: z.object({ index: z.number().int(), tseq: z.number().int().optional() }).optional(),
  /** Number of the tenant's first leaf in it. */
  firstTseq: z.number().int().optional(),
  entries: z.number().int(),
  disclosed: z.number().int(),
  erased: z.number().int(),
  ended: z.number().int().optional(),
  reason: z.string().optional(),
  /** Failures in a row, and when to try again. */
  tries: z.number().int(),
  due: z.number().int(),
});
export type ExportRow = z.infer<typeof exportRow>;

export interface KeptExport {
  readonly row: ExportRow;
  readonly version: string;
}

const keyOf = ({ tenant, id }: Pick<ExportRow, 'tenant' | 'id'>): string => `x!${tenant}!${id}`;
/** What is not over is listed by itself, and goes with the same transaction. */
const openKeyOf = ({ tenant, id }: Pick<ExportRow, 'tenant' | 'id'>): string => `o!${tenant}!${id}`;
export const partitionOf = (zone: string): string => zone;

const isOpen = ({ state }: ExportRow): boolean => state !== 'failed' && state !== 'expired';
/** What is done is still open for the timer, which removes its files one day, but no work of anybody. */
const isWork = ({ state }: ExportRow): boolean => isOpen({ state } as ExportRow) && state !== 'done';

const read = ({ value, version }: Row): KeptExport => ({ row: exportRow.parse(value), version });

export async function findExport(
  rows: Rows,
  zone: string,
  tenant: string,
  id: string,
): Promise<KeptExport | undefined> {
  const found = await rows.read(partitionOf(zone), keyOf({ tenant, id }));
  return found && read(found);
}

export async function listExports(rows: Rows, zone: string, tenant: string): Promise<ExportRow[]> {
  const prefix = `x!${tenant}!`;
  const found = await rows.scan(partitionOf(zone), prefix, endOf(prefix), limits.auditExportRows.value);
  return found.map((one) => read(one).row);
}

export const insertExport = (rows: Rows, row: ExportRow): Promise<boolean> =>
  rows.commit(partitionOf(row.zone), [
    { type: 'insert', key: keyOf(row), value: row },
    { type: 'insert', key: openKeyOf(row), value: { due: row.due } },
  ]);

/** `false` when somebody else was faster. */
export const replaceExport = (rows: Rows, row: ExportRow, version: string): Promise<boolean> =>
  rows.commit(partitionOf(row.zone), [
    { type: 'replace', key: keyOf(row), value: row, version },
    isOpen(row)
      ? { type: 'put', key: openKeyOf(row), value: { due: row.due } }
      : { type: 'remove', key: openKeyOf(row) },
  ]);

/** Exports of a zone that are due, some of them. */
export async function listDue(rows: Rows, zone: string, now: number): Promise<{ tenant: string; id: string }[]> {
  const found = await rows.scan(partitionOf(zone), 'o!', endOf('o!'), limits.auditExportRows.value);
  return found.flatMap(({ key, value }) => {
    const [, tenant = '', id = ''] = key.split('!');
    return Number(value.due) <= now ? [{ tenant, id }] : [];
  });
}

export async function countWork(rows: Rows, zone: string, tenant: string): Promise<number> {
  return (await listExports(rows, zone, tenant)).filter(isWork).length;
}

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
  const expires = ended !== undefined && state === 'done' ? ended + limits.auditExportKeepMs.value : undefined;
  return {
    ...{ id, tenant, zone, state: publicState[state], created: new Date(created).toISOString() },
    ...{ purpose, redaction, formats, entries, scanned: state === 'asked' || state === 'anchoring' ? 0 : at },
    ...(size !== undefined && { size }),
    ...(reason !== undefined && { reason }),
    ...(expires !== undefined && { expires: new Date(expires).toISOString() }),
    ...(files && { files }),
  };
}
