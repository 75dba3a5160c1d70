import { z } from 'zod';
import { originOfLog } from '../../shared/audit/delivery.ts';
import { isEd25519Text, keysIn } from '../../shared/audit/key-years.ts';
import { holdsEntries, readLogPath } from '../../shared/audit/log-path.ts';
import { loggedYear, loggedYears } from '../../shared/audit/logged-years.ts';
import { formatVerifierKey } from '../../shared/audit/note-key.ts';
import { fromBase64 } from '../../shared/base64.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { admit } from '../auth/admit.ts';
import { late } from '../clock.ts';
import type { PathParams, RequestContext } from '../context.ts';
import { callFunctions } from '../functions/call-functions.ts';
import { CircuitOpen } from '../functions/circuits.ts';
import { refuseWith } from '../http/refuse.ts';
import { commitmentOfReader } from '../ledger/commitment.ts';
import { AUDIT_READ_TIMEOUT_MS } from '../limits.ts';
import type { AuditLog } from '../settings-schema.ts';
import { callAuditFunctionsFor, refusalIn } from './call-functions.ts';
import { isOpenTo } from './exports.ts';

/** A log as readers see it. */
export const listedLog = z.object({
  zone: z.string(),
  year: z.number().int(),
  origin: z.string(),
  /** Its public key in the form of signed notes. */
  vkey: z.string(),
  /** Path prefix of its files. */
  prefix: z.string(),
  first: loggedYear.shape.first.describe('Entries that its first checkpoint covered'),
  size: loggedYear.shape.size.optional().describe('Entries that its published checkpoint covers'),
  state: z
    .enum(['open', 'closed', 'unknown'])
    .describe('`closed`: the year has ended. `unknown`: the functions did not report it'),
});

const PATH = /^([a-z0-9][a-z0-9_.-]{0,62})\/(\d{4})\/(.+)$/;

/** Refusal of a caller with too many concurrent reads; it is no fault of the edge. */
const TOO_MUCH = 'allowance_concurrent' satisfies Refusal['reason'];

/**
 * `GET /v1/audit/log?zone=…`: the logs of each zone, newest first, each with path prefix, key and size. While
 * the functions are unavailable, only this year's log, without its size.
 */
export async function listLogs(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, ['audit', 'operate'], context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const requested = new URL(request.url).searchParams.get('zone');
  const mine = [...context.settings.auditLogs].filter(([zone]) => isOpenTo(claims.value, zone));
  const open = requested === null ? mine : mine.filter(([zone]) => zone === requested);
  if (requested !== null && open.length === 0) return refuseWith(refuse('zone_unserved', { zone: requested }));
  const found = await Promise.all(open.map(([zone, log]) => listZone(zone, log, claims.value, context)));
  const data: z.infer<typeof listedLog>[] = [];
  for (const listed of found) {
    if ('reason' in listed) return refuseWith(listed);
    data.push(...listed);
  }
  return Response.json({ object: 'list', data }, { headers: { 'cache-control': 'no-store' } });
}

async function listZone(
  zone: string,
  { origin: base, key, years = [] }: AuditLog,
  { tenant, subject }: Claims,
  context: RequestContext,
): Promise<z.infer<typeof listedLog>[] | Refusal> {
  const found = await callAuditFunctionsFor({ zone, path: `/log/${zone}` }, loggedYears, { tenant, subject }, context);
  if (!found.ok && found.refusal.reason === TOO_MUCH) return found.refusal;
  const thisYear = new Date(context.runtime.now()).getUTCFullYear();
  const known = found.ok
    ? found.value.data.map(({ closed, ...one }) => ({
        ...one,
        state: closed ? ('closed' as const) : ('open' as const),
      }))
    : [{ year: thisYear, state: 'unknown' as const }];
  const none = [{ year: thisYear, size: 0, state: 'open' as const }];
  return (known.length > 0 ? known : none).flatMap((one) => {
    const origin = originOfLog(base, zone, one.year);
    // The newest of a year's keys, which signed the current checkpoint.
    const [text] = keysIn(years, [key], one.year).filter(isEd25519Text);
    const publicKey = text === undefined ? undefined : fromBase64(text);
    const vkey = publicKey && formatVerifierKey(origin, publicKey);
    return vkey === undefined ? [] : [{ zone, origin, vkey, prefix: `/v1/audit/log/${zone}/${one.year}`, ...one }];
  });
}

/**
 * `GET /v1/audit/log/{zone}/{year}/…`: a log in the layout of C2SP tlog-tiles, with receipts and the policy,
 * read-only. Checkpoint and hashes are open to the scope `audit`, because they reveal only consistency.
 * Entries are of all tenants and need the scope `operate`.
 */
export async function readLog(request: Request, context: RequestContext, { name }: PathParams): Promise<Response> {
  const [, zone = '', year = '', path = ''] = PATH.exec(name) ?? [];
  const logPath = readLogPath(path);
  const scopes = holdsEntries(logPath) ? ('operate' as const) : (['audit', 'operate'] as const);
  const claims = await admit(request, scopes, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const { settings } = context;
  const baseUrl = settings.functionsUrls.get(zone);
  if (!logPath) return refuseWith(refuse('route_unknown'));
  if (!isOpenTo(claims.value, zone)) return refuseWith(refuse('zone_unserved', { zone }));
  if (baseUrl === undefined || !settings.auditLogs.has(zone)) return refuseWith(refuse('audit_closed'));
  const { tenant, subject: holder } = claims.value;
  const named = await commitmentOfReader(zone, { tenant, subject: holder }, context);
  if (!named.ok) return refuseWith(named.refusal);
  const operate = holdsEntries(logPath) && { operate: true };
  const claimed = { tenant, ...operate, ...(named.value !== undefined && { subject: named.value }) };
  const file = `/api/audit/log/${zone}/${year}/${path}`;
  const call = { method: 'GET', baseUrl, path: file, claims: claimed, ms: AUDIT_READ_TIMEOUT_MS } as const;
  const answered = await callFunctions(call, (response) => response, context);
  if (answered instanceof CircuitOpen) return refuseWith({ ...refuse('audit_unreachable'), ...answered });
  if (answered === late || answered === undefined) return refuseWith(refuse('audit_unreachable'));
  if (answered.status !== 200 && answered.status !== 404) return refuseWith(await refusalIn(answered));
  if (answered.status === 404) {
    await answered.body?.cancel();
    return refuseWith(refuse('route_unknown'));
  }
  const headers = new Headers();
  for (const kept of ['content-type', 'cache-control']) headers.set(kept, answered.headers.get(kept) ?? '');
  return new Response(answered.body, { headers });
}
