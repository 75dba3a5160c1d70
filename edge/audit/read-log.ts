import { z } from 'zod';
import { fromBase64 } from '../../shared/audit/base64.ts';
import { originOfLog } from '../../shared/audit/delivery.ts';
import { HEADS } from '../../shared/audit/head.ts';
import { holdsEntries, readLogPath } from '../../shared/audit/log-path.ts';
import { formatVerifierKey } from '../../shared/audit/note.ts';
import { limits } from '../../shared/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { late } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { refuseWith } from '../refuse.ts';
import type { Settings } from '../settings.ts';
import { admit } from '../tenant/admit.ts';
import { callFunctions } from '../upload/back-office.ts';
import { isOpenTo } from './exports.ts';
import { commitmentOfReader } from './reader.ts';

/** A log as its readers find it. */
export const listedLog = z.object({
  zone: z.string(),
  year: z.number().int(),
  origin: z.string(),
  /** Its public key, as signed notes write it. */
  vkey: z.string(),
  /** Where its files are. */
  prefix: z.string(),
});

const PATH = /^([a-z0-9][a-z0-9_.-]{0,62})\/(\d{4})\/(.+)$/;

/** The logs of the zones, and the one of their checkpoints. */
const logsOf = ({ auditLogs, auditHeads }: Settings) =>
  auditHeads ? [...auditLogs, [HEADS, auditHeads] as const] : [...auditLogs];

/** `GET /v1/audit/log`: the logs that there are, each under what its files are called, and the key that signs it. */
export async function listLogs(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, ['audit', 'operate'], context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const { settings, surroundings } = context;
  const year = new Date(surroundings.now()).getUTCFullYear();
  const open = logsOf(settings).filter(([zone]) => zone === HEADS || isOpenTo(claims.value, zone));
  const data = open.flatMap(([zone, { origin: base, key }]): z.infer<typeof listedLog>[] => {
    const publicKey = fromBase64(key);
    const origin = originOfLog(base, zone, year);
    const vkey = publicKey && formatVerifierKey(origin, publicKey);
    return vkey === undefined ? [] : [{ zone, year, origin, vkey, prefix: `/v1/audit/log/${zone}/${year}` }];
  });
  return Response.json({ object: 'list', data });
}

/**
 * `GET /v1/audit/log/{zone}/{year}/…`: a log as C2SP tlog-tiles lays it out, with receipts and the policy beside it, to be
 * read and never written. Checkpoint and hashes are for everybody with the scope `audit`: they tell nothing but that
 * nothing was changed. Entries are of all tenants and for those who run the fleet.
 */
export async function readLog(request: Request, context: RequestContext, name: string): Promise<Response> {
  const [, zone = '', year = '', path = ''] = PATH.exec(name) ?? [];
  const asked = readLogPath(path);
  const scopes = holdsEntries(asked) ? ('operate' as const) : (['audit', 'operate'] as const);
  const claims = await admit(request, scopes, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const { settings } = context;
  const office = settings.backOffices.get(zone);
  if (!asked) return refuseWith(refuse('route_unknown'));
  // The log of checkpoints is of all regions, and says nothing of what is in theirs.
  if (zone !== HEADS && !isOpenTo(claims.value, zone)) return refuseWith(refuse('zone_unserved', { zone }));
  if (office === undefined || !logsOf(settings).some(([one]) => one === zone))
    return refuseWith(refuse('audit_closed'));
  // The log of checkpoints is about nobody, and names none of its readers.
  const { tenant, subject: holder } = claims.value;
  const named = await commitmentOfReader(zone, zone === HEADS ? { tenant } : { tenant, subject: holder }, context);
  if (!named.ok) return refuseWith(named.refusal);
  const operate = holdsEntries(asked) && { operate: true };
  const claimed = { tenant, ...operate, ...(named.value !== undefined && { subject: named.value }) };
  const address = `${office}/api/audit/log/${zone}/${year}/${path}`;
  const call = { method: 'GET', address, claims: claimed, ms: limits.auditReadMs.value } as const;
  const answered = await callFunctions(call, (response) => response, context);
  if (answered === late || answered === undefined || (answered.status !== 200 && answered.status !== 404)) {
    if (answered !== late) await answered?.body?.cancel();
    return refuseWith(refuse('audit_unreachable'));
  }
  if (answered.status === 404) {
    await answered.body?.cancel();
    return refuseWith(refuse('route_unknown'));
  }
  const headers = new Headers();
  for (const kept of ['content-type', 'cache-control']) headers.set(kept, answered.headers.get(kept) ?? '');
  return new Response(answered.body, { headers });
}
