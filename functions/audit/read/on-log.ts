// GET /api/audit/log/{zone}/{year}/{path}: files of a log, as `shared/audit/log-path.ts` names them. The edge
// authorises the reader.
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import { originOfLog } from '../../../shared/audit/delivery.ts';
import { holdsEntries, type LogPath, readLogPath } from '../../../shared/audit/log-path.ts';
import { TILE_WIDTH } from '../../../shared/audit/tile.ts';
import { refuse } from '../../../shared/refusal.ts';
import type { EdgeCaller } from '../../caller/edge-caller.ts';
import { answer, answerNo } from '../../http/answer.ts';
import { TenantLimiter } from '../../http/limiter.ts';
import type { LogContext } from '../context/log-context.ts';
import { verified } from '../context/verified.ts';
import { writePolicy } from '../log/log-keys.ts';
import { checkpointName, fileArea, fileName, witnessedName, yearOf } from '../log/log-names.ts';
import { makeReceipt } from '../log/make-receipt.ts';
import { publishedSize } from '../log/publish-checkpoint.ts';
import type { Reads } from '../report/report-reads.ts';
import { listYears } from './list-years.ts';

/**
 * Receipts and lists of logs that one process makes concurrently: each is a dozen reads of storage, in
 * parallel with writing the logs.
 */
const AUDIT_RECEIPTS_MAX = 16;
/**
 * Concurrent receipts of one tenant in a zone: a quarter of AUDIT_RECEIPTS_MAX, so that a looping client
 * leaves capacity for three others.
 */
export const AUDIT_RECEIPTS_PER_TENANT_MAX = 4;
/** Log files that one process reads concurrently for callers: each is one read of storage, of some KiB. */
const AUDIT_FILES_MAX = 64;
/**
 * Concurrent log files of one tenant in a zone: a quarter of AUDIT_FILES_MAX, and as many as clients of whole
 * logs fetch in parallel.
 */
export const AUDIT_FILES_PER_TENANT_MAX = 16;

/** GET /api/audit/log/{zone}: the logs that there are (`shared/audit/logged-years.ts`). */
export const onYears = (
  context: LogContext | undefined,
  reads: Reads | undefined,
): ((request: HttpRequest) => Promise<HttpResponseInit>) => {
  const limiter = costly();
  return verified(context, async (request, caller, found) => {
    const { zone = '' } = request.params;
    if (!found.zones.includes(zone)) return answerNo(refuse('zone_unserved', { zone }));
    return limiter.run(slotOf(zone, caller), async () => {
      const noted = await noteRead(reads, zone, caller, 'logs');
      if (noted && !noted.ok) return answerNo(noted.refusal);
      return answer(200, { data: await listYears(found.store, zone) });
    });
  });
};

const costly = (): TenantLimiter => new TenantLimiter(AUDIT_RECEIPTS_MAX, AUDIT_RECEIPTS_PER_TENANT_MAX);
const cheap = (): TenantLimiter => new TenantLimiter(AUDIT_FILES_MAX, AUDIT_FILES_PER_TENANT_MAX);
/**
 * Slots are counted by zone and tenant: a tenant requests all its zones at once, and one process may serve
 * several.
 */
const slotOf = (zone: string, { tenant }: Pick<EdgeCaller, 'tenant'>): string => JSON.stringify([zone, tenant]);

/** Readers may cache immutable files; shared caches may not, since each read needs a token. */
const FOREVER = 'private, max-age=31536000, immutable';

export const onLog = (
  context: LogContext | undefined,
  reads: Reads | undefined,
): ((request: HttpRequest) => Promise<HttpResponseInit>) => {
  const [receipts, files] = [costly(), cheap()];
  return verified(context, async (request, caller, found) => {
    const { zone = '', year = '', path = '' } = request.params;
    const file = readLogPath(path);
    if (!found.zones.includes(zone) || !/^\d{4}$/.test(year) || !file) return answerNo(refuse('route_unknown'));
    // Entries are of all tenants. The edge has looked already; this is for the day on which it has not.
    if (holdsEntries(file) && !caller.operate) return answerNo(refuse('scope_missing', { scope: 'operate' }));
    return (file.kind === 'receipt' ? receipts : files).run(slotOf(zone, caller), async () => {
      const body = await read(found, { zone, year: Number(year), path, file });
      if (body === undefined) return answerNo(refuse('route_unknown'));
      const tile = file.kind === 'tile';
      const action = !tile ? file.kind : holdsEntries(file) ? 'entries' : 'hashes';
      const noted = await noteRead(reads, zone, caller, action);
      if (noted && !noted.ok) return answerNo(noted.refusal);
      const headers = {
        'content-type': tile ? 'application/octet-stream' : 'text/plain; charset=utf-8',
        'cache-control': tile ? FOREVER : 'no-store',
      };
      return { status: 200, body: body as Uint8Array<ArrayBuffer> | string, headers };
    });
  });
};

const noteRead = async (
  reads: Reads | undefined,
  zone: string,
  { tenant, subject }: Pick<EdgeCaller, 'tenant' | 'subject'>,
  action: string,
) => reads?.note({ zone, tenant, subject, action });

interface FileOfLog {
  readonly zone: string;
  readonly year: number;
  readonly path: string;
  /** The path, parsed. */
  readonly file: LogPath;
}

async function read(
  { store, base, policy, now }: LogContext,
  { zone, year, path, file }: FileOfLog,
): Promise<Uint8Array | string | undefined> {
  switch (file.kind) {
    case 'receipt':
      return makeReceipt(store, zone, year, file.index);
    case 'policy':
      // The policy of this year is served before its log begins, any other only with a log.
      return year === yearOf(now()) || (await publishedSize({ store, zone, year })) > 0
        ? writePolicy(policy(originOfLog(base, zone, year)))
        : undefined;
    case 'tile':
      return (await store.read(fileArea({ partial: file.tile.width < TILE_WIDTH }), fileName(zone, year, path)))?.bytes;
    case 'checkpoint':
      return (await store.read('state', checkpointName(zone, year)))?.bytes;
    case 'witnessed':
      return (await store.read('state', witnessedName(zone, year)))?.bytes;
  }
}
