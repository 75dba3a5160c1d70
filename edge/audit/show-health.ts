import { type AuditHealth, logHealth, type OutboxHealth } from '../../shared/audit/health.ts';
import { refuse } from '../../shared/refusal.ts';
import { admit } from '../auth/admit.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { refuseWith } from '../http/refuse.ts';
import type { OutboxPage } from '../ledger/outbox.ts';
import { gateName } from '../ledger/record.ts';
import { AUDIT_READ_TIMEOUT_MS } from '../limits.ts';
import { callAuditFunctionsFor } from './call-functions.ts';
import { isOpenTo } from './exports.ts';

/**
 * `GET /v1/audit/health?zone=`: health of a zone's log, and the events that wait for it at the edge. Names
 * and numbers only.
 */
export async function showAuditHealth(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, ['audit', 'operate'], context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const { env, settings, runtime } = context;
  const zone = new URL(request.url).searchParams.get('zone');
  if (zone === null) return refuseWith(refuse('field_missing', { field: 'zone' }));
  if (!(settings.zones.includes(zone) && isOpenTo(claims.value, zone)))
    return refuseWith(refuse('zone_unserved', { zone }));
  const { tenant } = claims.value;
  const log = await callAuditFunctionsFor({ zone, path: `/${zone}/health` }, logHealth, { tenant }, context);
  if (!log.ok) return refuseWith(log.refusal);
  const now = runtime.now();
  const look = async (pending: Promise<OutboxPage> | OutboxPage): Promise<OutboxHealth> => {
    const page = await within(Promise.resolve(pending), AUDIT_READ_TIMEOUT_MS, runtime);
    if (page === late) throw new Error('an outbox does not answer');
    return { waiting: page.waiting, oldestMs: Math.max(0, now - (page.rows[0]?.t ?? now)) };
  };
  try {
    const name = gateName({ tenant, zones: [zone] }, settings.zones);
    const operates = claims.value.scopes.has('operate');
    const [gate, roster] = await Promise.all([
      look(env.GATE.getByName(name).outbox(0, 1)),
      operates ? look(env.ROSTER.getByName(zone).outbox(0, 1)) : undefined,
    ]);
    const health: AuditHealth = {
      ...log.value,
      outboxes: { gate, ...(roster && { roster }) },
    };
    return Response.json(health, { headers: { 'cache-control': 'no-store' } });
  } catch {
    return refuseWith(refuse('audit_unreachable', undefined, 'an outbox does not answer'));
  }
}
