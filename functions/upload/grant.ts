// A new upload: a row, then an address. In this order, so that no address is without a row.
import { limits } from '../../shared/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { fileHeaders } from '../../shared/upload/blocks.ts';
import type { NewUpload, UploadGrant } from '../../shared/upload/contract.ts';
import { UPLOADS, uploadBlob } from '../../shared/upload/paths.ts';
import { dropOverdue } from '../caller/request-scope.ts';
import { endOf } from '../store/rows.ts';
import { insertRecord } from './decide-step.ts';
import type { Office } from './office.ts';
import { largest, MINUTE, newRecord, type UploadRecord } from './record.ts';
import { readUpload } from './step.ts';
import { touchTenant } from './tenants.ts';
import { refusalOfCallback, webhookSecret } from './webhook.ts';

/** How long one count of a tenant's open uploads is believed, and then counted on from. The bound is a soft one. */
const COUNT_MS = MINUTE / 2;
const counts = new WeakMap<Office, Map<string, OnTheWay>>();

interface OnTheWay {
  readonly at: number;
  open: number;
  bytes: number;
}

export async function grant(office: Office, asked: NewUpload): Promise<Result<UploadGrant>> {
  const zoneKey = office.settings.ZONE_KEYS[asked.zone]?.[0];
  if (!office.settings.ZONES.includes(asked.zone)) return no(refuse('zone_unserved', { zone: asked.zone }));
  // Outcomes are sealed to it too, so even a plain file needs one.
  if (!zoneKey) return no(refuse('uploads_closed', undefined, `no key of the zone ${asked.zone}`));
  const callback = refusalOfCallback(office, asked);
  if (callback) return no(callback);
  // The edge repeats a call whose answer was lost: the same call has the same answer. This read also shows that storage
  // answers: a write that is sent to storage that hangs would be carried out after the refusal.
  const record = (await readUpload(office, asked)) ?? (await insert(office, asked));
  if ('reason' in record) return no(record);
  if (!isSame(record, asked)) return no(refuse('upload_exists'));
  return ok({
    id: asked.id,
    url: await office.blobs.address(UPLOADS, uploadBlob(asked), 'write', record.expires),
    headers: { ...fileHeaders },
    expires: record.expires,
    maxBytes: asked.bytes ?? largest(asked),
    zoneKey,
    ...(asked.callback !== undefined && { webhookSecret: webhookSecret(office.settings, asked.tenant) }),
  });
}

/** The row of a new upload, or of the one that another call with its id has made meanwhile. */
async function insert(office: Office, asked: NewUpload): Promise<UploadRecord | Refusal> {
  const bound = await checkBounds(office, asked);
  if (!bound.ok) return bound.refusal;
  await touchTenant(office, asked.tenant);
  // The tenant's row is no trace of this request.
  dropOverdue();
  const record = newRecord(asked, office.now());
  if (await office.rows.commit(asked.tenant, insertRecord(record))) return record;
  return (await readUpload(office, asked)) ?? refuse('upload_exists');
}

/**
 * Whether a row was made by the same call and still waits for its file or has it. The edge makes an id once for each
 * Idempotency-Key and request. A file that is sent to a cancelled upload would be deleted.
 */
function isSame({ asked: before, state }: UploadRecord, { tenant: _, id: __, ...asked }: NewUpload): boolean {
  if (before.fingerprint !== undefined) return before.fingerprint === asked.fingerprint && state.status !== 'cancelled';
  return state.status === 'granted' && JSON.stringify(before) === JSON.stringify(asked);
}

/** What a tenant may have on its way: files and, where its token says so, bytes. */
async function checkBounds(office: Office, asked: NewUpload): Promise<Result<undefined>> {
  const open = Math.min(asked.most?.open ?? Number.POSITIVE_INFINITY, limits.uploadsOpen.value);
  const bytes = asked.most?.bytes ?? Number.POSITIVE_INFINITY;
  if ((asked.bytes ?? 0) > bytes) return no(refuse('upload_too_large', { limit: bytes }));
  const size = asked.bytes ?? largest(asked);
  const known = await countOpen(office, asked.tenant);
  if (known.open >= open) return no(refuse('uploads_waiting', { limit: open }));
  if (known.open > 0 && known.bytes + size > bytes) return no(refuse('uploads_bytes', { limit: bytes }));
  known.open += 1;
  known.bytes += size;
  return ok(undefined);
}

export async function countOpen(office: Office, tenant: string): Promise<OnTheWay> {
  const known = counts.get(office) ?? new Map<string, OnTheWay>();
  counts.set(office, known);
  const counted = known.get(tenant);
  const now = office.now();
  if (counted && counted.at + COUNT_MS > now) return counted;
  const rows = await office.rows.scan(tenant, 'o!', endOf('o!'), limits.uploadsOpen.value);
  const bytes = rows.reduce((sum, { value }) => sum + Number(value.bytes ?? 0), 0);
  const fresh = { at: now, open: rows.length, bytes };
  known.set(tenant, fresh);
  return fresh;
}
