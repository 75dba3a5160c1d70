// Uploads and projects that a caller may see: those of its zones, and of its subject where its token shows no others.

import type { UploadPlace } from '../../shared/jobs/paths.ts';
import type { EdgeCaller } from '../caller/edge-caller.ts';
import type { Settings } from '../settings.ts';
import { endOf, type Rows } from '../store/rows.ts';
import { readRecord, recordKey, type UploadRecord } from './record.ts';

/** Rows that one page of one subject scans: the answer of Azure Tables to one query. */
const UPLOAD_LIST_SCAN_MAX = 1_000;

interface RowStore {
  readonly rows: Rows;
  readonly settings: Pick<Settings, 'ZONES'>;
  /** Rows that one page of one subject scans. */
  readonly scanRows?: number;
}

/** Bounds of what a caller may see of its tenant's. An absent member bounds nothing. */
export type Viewer = Pick<EdgeCaller, 'owner' | 'zones'>;

const mayView = ({ owner, zones }: Viewer, { request }: UploadRecord): boolean =>
  (owner === undefined || request.subject === owner) && (zones === undefined || zones.includes(request.zone));

/** Returns whether a caller may see an upload or a project. */
export async function isVisible(
  { rows }: Pick<RowStore, 'rows'>,
  { tenant, id }: UploadPlace,
  viewer: Viewer,
): Promise<boolean> {
  if (viewer.owner === undefined && viewer.zones === undefined) return true;
  const row = await rows.read(tenant, recordKey(id));
  return row !== undefined && mayView(viewer, readRecord(row));
}

export interface PageQuery {
  readonly tenant: string;
  /** The last id of the page before. */
  readonly after: string | undefined;
  readonly limit: number;
  readonly viewer?: Viewer;
}

/**
 * Reads a page of records whose keys begin with `prefix`, newest first. `next` is the id to go on after; a page of some
 * of the tenant's records may be short, or empty, and still have a `next`, since one query reads a bounded number of rows.
 */
export async function readPage(
  { rows, settings, scanRows = UPLOAD_LIST_SCAN_MAX }: RowStore,
  prefix: string,
  { tenant, after, limit, viewer = {} }: PageQuery,
): Promise<{ readonly records: readonly UploadRecord[]; readonly next: string | undefined }> {
  const from = after === undefined ? prefix : `${recordKey(after)}!`;
  const { owner, zones } = viewer;
  const seesAll = owner === undefined && settings.ZONES.every((zone) => zones?.includes(zone) ?? true);
  const most = seesAll ? limit + 1 : scanRows;
  const all = (await rows.scan(tenant, from, endOf(prefix), most)).map(readRecord);
  const visible = all.filter((record) => mayView(viewer, record));
  const records = visible.slice(0, limit);
  const rest = all.length === most ? all.at(-1)?.id : undefined;
  return { records, next: visible.length > limit ? records.at(-1)?.id : rest };
}
