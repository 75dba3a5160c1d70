// Grants an upload: inserts its row, then makes its address, so that no address lacks a row.

import { fileHeaders } from '../../shared/jobs/blocks.ts';
import { UPLOADS, uploadBlob } from '../../shared/jobs/paths.ts';
import { newState } from '../../shared/jobs/state.ts';
import type { NewUpload, UploadGrant } from '../../shared/jobs/upload-contract.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { ZoneKey } from '../../shared/seal/zone-key.ts';
import { dropOverdue } from '../caller/request-scope.ts';
import { endOf } from '../store/rows.ts';
import type { JobContext } from './context.ts';
import { insertRecord } from './decide-step.ts';
import { largest, MINUTE, newRecord, type UploadRecord } from './record.ts';
import { readUpload } from './step.ts';
import { touchTenant } from './tenants.ts';
import { refusalOfCallback, webhookSecret } from './webhook.ts';

/**
 * Open files of one tenant: twice the largest batch that is tested. Further ones are refused with a retry.
 */
export const UPLOADS_OPEN_MAX = 20_000;

/** Lifetime of a count of a tenant's open uploads. Other processes make the bound a soft one. */
const COUNT_MS = MINUTE / 2;
const counts = new WeakMap<JobContext, Map<string, OpenCount>>();

interface OpenCount {
  readonly at: number;
  open: number;
  bytes: number;
}

/** Returns the key that files of a new job are sealed to, or why the job is refused. */
export function zoneKeyFor(
  context: JobContext,
  { zone, callback }: Pick<NewUpload, 'zone' | 'callback'>,
): Result<ZoneKey> {
  const zoneKey = context.settings.ZONE_KEYS[zone]?.[0];
  if (!context.settings.ZONES.includes(zone)) return no(refuse('zone_unserved', { zone }));
  // Outcomes are sealed to it too, so even a plain file needs one.
  if (!zoneKey) return no(refuse('uploads_closed', undefined, `no key of the zone ${zone}`));
  const refusal = refusalOfCallback(context, { callback });
  return refusal ? no(refusal) : ok(zoneKey);
}

export async function grantUpload(context: JobContext, request: NewUpload): Promise<Result<UploadGrant>> {
  const zoneKey = zoneKeyFor(context, request);
  if (!zoneKey.ok) return zoneKey;
  // A repeated call has the same answer. The read also shows that storage answers: a write to storage that hangs would
  // be carried out after the refusal.
  const record = (await readUpload(context, request)) ?? (await insert(context, request));
  if ('reason' in record) return no(record);
  if (!isSame(record, request)) return no(refuse('upload_exists'));
  return ok({
    id: request.id,
    url: await context.blobs.address(UPLOADS, uploadBlob(request), 'write', record.expires),
    headers: { ...fileHeaders },
    expires: record.expires,
    maxBytes: request.bytes ?? largest(request),
    zoneKey: zoneKey.value,
    ...(request.callback !== undefined && { webhookSecret: webhookSecret(context.settings, request.tenant) }),
  });
}

/** Inserts the row, or reads that of a concurrent call with the same id. */
async function insert(context: JobContext, request: NewUpload): Promise<UploadRecord | Refusal> {
  const bound = await checkBounds(context, request);
  if (!bound.ok) return bound.refusal;
  await touchTenant(context, request.tenant);
  // The tenant's row does not count as a write of this request.
  dropOverdue();
  const state = request.members ? { ...newState, detects: true as const } : newState;
  const record = newRecord(request, context.now(), state);
  if (await context.rows.commit(request.tenant, insertRecord(record))) return record;
  return (await readUpload(context, request)) ?? refuse('upload_exists');
}

/**
 * Reports whether the same call made a row that still waits for its file or has it. The edge makes an id once for each
 * Idempotency-Key and request. A file that is sent to a cancelled upload would be deleted.
 */
function isSame({ request: before, state }: UploadRecord, { tenant: _, id: __, ...request }: NewUpload): boolean {
  if (before.fingerprint !== undefined)
    return before.fingerprint === request.fingerprint && state.status !== 'cancelled';
  return state.status === 'granted' && JSON.stringify(before) === JSON.stringify(request);
}

/** Checks the tenant's bounds on open files and, where its token says so, bytes. */
async function checkBounds(context: JobContext, request: NewUpload): Promise<Result<undefined>> {
  const open = Math.min(request.most?.open ?? Number.POSITIVE_INFINITY, UPLOADS_OPEN_MAX);
  const bytes = request.most?.bytes ?? Number.POSITIVE_INFINITY;
  if ((request.bytes ?? 0) > bytes) return no(refuse('upload_too_large', { limit: bytes }));
  const size = request.bytes ?? largest(request);
  const known = await countOpen(context, request.tenant);
  if (known.open >= open) return no(refuse('uploads_waiting', { limit: open }));
  if (known.open > 0 && known.bytes + size > bytes) return no(refuse('uploads_bytes', { limit: bytes }));
  known.open += 1;
  known.bytes += size;
  return ok(undefined);
}

export async function countOpen(context: JobContext, tenant: string): Promise<OpenCount> {
  const known = counts.get(context) ?? new Map<string, OpenCount>();
  counts.set(context, known);
  const counted = known.get(tenant);
  const now = context.now();
  if (counted && counted.at + COUNT_MS > now) return counted;
  const rows = await context.rows.scan(tenant, 'o!', endOf('o!'), UPLOADS_OPEN_MAX);
  const bytes = rows.reduce((sum, { value }) => sum + Number(value.bytes ?? 0), 0);
  const fresh = { at: now, open: rows.length, bytes };
  known.set(tenant, fresh);
  return fresh;
}
