// Uploads and projects of one subject, for callers that may see no others.
import { limits } from '../../shared/limits.ts';
import type { UploadPlace } from '../../shared/upload/paths.ts';
import { endOf, type Rows } from '../store/rows.ts';
import { readRecord, recordKey, type UploadRecord } from './record.ts';

interface RowStore {
  readonly rows: Rows;
}

/** Returns whether a caller may see an upload or a project. `owner` is `undefined` for one that may see the tenant's. */
export async function isVisible({ rows }: RowStore, { tenant, id }: UploadPlace, owner?: string): Promise<boolean> {
  if (owner === undefined) return true;
  const row = await rows.read(tenant, recordKey(id));
  return row !== undefined && readRecord(row).asked.subject === owner;
}

export interface PageQuery {
  readonly tenant: string;
  /** The last id of the page before. */
  readonly after: string | undefined;
  readonly limit: number;
  readonly owner?: string | undefined;
}

/**
 * Reads a page of records whose keys begin with `prefix`, newest first. `next` is the id to go on after; a page of one
 * owner may be short, or empty, and still have a `next`, since one query reads a bounded number of rows.
 */
export async function readPage(
  { rows }: RowStore,
  prefix: string,
  { tenant, after, limit, owner }: PageQuery,
): Promise<{ readonly records: readonly UploadRecord[]; readonly next: string | undefined }> {
  const from = after === undefined ? prefix : `${recordKey(after)}!`;
  const most = owner === undefined ? limit + 1 : limits.uploadListScan.value;
  const all = (await rows.scan(tenant, from, endOf(prefix), most)).map(readRecord);
  const visible = owner === undefined ? all : all.filter(({ asked }) => asked.subject === owner);
  const records = visible.slice(0, limit);
  const rest = all.length === most ? all.at(-1)?.id : undefined;
  return { records, next: visible.length > limit ? records.at(-1)?.id : rest };
}
