import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { showAuditHealth } from '../../../edge/audit/show-health.ts';
import { realRuntime } from '../../../edge/clock.ts';
import { createEvent } from '../../../edge/ledger/create-event.ts';
import { auditHealth, type LogHealth } from '../../../shared/audit/health.ts';
import { elsewhere, passTime, readRefusal } from '../../fake/network.ts';
import { makeContext } from '../../fake/request-context.ts';
import { makeSettings } from '../../fake/settings.ts';
import { makeToken } from '../authority.ts';

const health: LogHealth = {
  ...{ zone: 'eu', at: 5, intake: { waiting: 2, oldestMs: 9 }, witnesses: false, development: true },
  log: { origin: 'audit.example/eu/2026', size: 7, published: 7, last: 4, open: 1, late: 0 },
};
const settings = () =>
  makeSettings({
    AUDIT_LOGS: JSON.stringify({ eu: { origin: 'audit.example', key: btoa('k'.repeat(32)) } }),
    FUNCTIONS_URLS: JSON.stringify({ eu: 'http://functions-eu.test' }),
  });

async function look(claims: Record<string, unknown>, zone = 'eu'): Promise<Response> {
  const { context } = makeContext({}, realRuntime, settings());
  Object.assign(context.env, { GATE: env.GATE });
  const headers = { authorization: `Bearer ${await makeToken(claims)}` };
  return showAuditHealth(new Request(`http://edge.test/v1/audit/health?zone=${zone}`, { headers }), context);
}

describe('C9 how the record is doing, seen from the edge', () => {
  it('reports the functions’ health and outboxes; the roster for operators', async () => {
    elsewhere.set('functions-eu.test', async (request) => {
      expect(new URL(request.url).pathname).toBe('/api/audit/eu/health');
      return Response.json(health);
    });
    const tenant = `t-${crypto.randomUUID().slice(0, 8)}`;
    const events = [1, 2, 3].map(() => createEvent({ type: 'gap', lost: 0, from: 0, to: 0 }, 1));
    await env.GATE.getByName(`${tenant}/eu`).apply([{ kind: 'record', events }]);
    await env.GATE.getByName(`${tenant}/eu`).outbox(0, 1);
    passTime(5_000);
    const seen = auditHealth.parse(await (await look({ tenant, scope: 'audit' })).json());
    expect(seen).toMatchObject({ ...health, outboxes: { gate: { waiting: 3 } } });
    expect(seen.outboxes.gate.oldestMs).toBeGreaterThanOrEqual(5_000);
    expect(seen.outboxes).not.toHaveProperty('roster');
    const fleet = auditHealth.parse(await (await look({ tenant, scope: 'operate' })).json());
    expect(fleet.outboxes).toHaveProperty('roster');
  });

  it('names the clock of the functions that refuse the edge for its time', async () => {
    const error = { reason: 'token_expired', params: { rule: "the functions' clock is 600 s ahead" } };
    elsewhere.set('functions-eu.test', async () => Response.json({ error }, { status: 401 }));
    const refused = await readRefusal(await look({ scope: 'audit' }));
    expect(refused).toMatchObject({ status: 503, code: 'audit_unreachable' });
    expect(refused.message).toContain("the functions' clock is 600 s ahead");
  });

  it('refuses other tenants and zones, and functions without a valid answer', async () => {
    expect((await look({ scope: 'transcribe' })).status).toBe(403);
    expect(await readRefusal(await look({ scope: 'audit' }, 'mars'))).toMatchObject({ code: 'zone_unserved' });
    elsewhere.set('functions-eu.test', async () => Response.json({ hello: 1 }));
    expect(await readRefusal(await look({ scope: 'audit' }))).toMatchObject({ status: 503, code: 'audit_unreachable' });
    elsewhere.set('functions-eu.test', () => Promise.reject(new Error('away')));
    expect(await readRefusal(await look({ scope: 'audit' }))).toMatchObject({ status: 503, code: 'audit_unreachable' });
  });
});
