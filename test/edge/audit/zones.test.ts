import { env } from 'cloudflare:workers';
import { decodeJwt } from 'jose';
import { describe, expect, it } from 'vitest';
import { listLogs, readLog } from '../../../edge/audit/read-log.ts';
import { readOutbox } from '../../../edge/audit/read-outbox.ts';
import { showAuditHealth } from '../../../edge/audit/show-health.ts';
import { realRuntime } from '../../../edge/clock.ts';
import type { PathParams, RequestContext } from '../../../edge/context.ts';
import type { Bindings } from '../../../edge/settings.ts';
import type { Scope } from '../../../shared/tenant/claims.ts';
import { elsewhere, readRefusal } from '../../fake/network.ts';
import { makeContext } from '../../fake/request-context.ts';
import { makeSettings } from '../../fake/settings.ts';
import { makeToken } from '../authority.ts';

const log = { origin: 'audit.example', key: btoa('k'.repeat(32)) };
const office = 'http://functions.test';
const settings = () =>
  makeSettings({
    ZONES: '["eu","us"]',
    AUDIT_LOGS: JSON.stringify({ eu: log, us: log }),
    FUNCTIONS_URLS: JSON.stringify({ eu: office, us: office }),
  });

type Answer = (request: Request, context: RequestContext, params: PathParams) => Response | Promise<Response>;

async function call(answer: Answer, query: string, name = '', scope: Scope = 'operate', zones = ['us']) {
  const { context: bare } = makeContext({} as never, realRuntime, settings());
  const context = { ...bare, env: env as unknown as Bindings };
  const headers = { authorization: `Bearer ${await makeToken({ scope, tenant: 'acme', zones })}` };
  return answer(new Request(`http://edge.test/${query}`, { headers }), context, { name });
}

describe('C9 the record of a region is for tokens of that region', () => {
  it.each<[string, Answer, string, string]>([
    ['a file of its log', readLog, '', 'eu/2026/checkpoint'],
    ['its receipts', readLog, '', 'eu/2026/receipt/1'],
    ['its entries', readLog, '', 'eu/2026/tile/entries/000'],
    ['its health', showAuditHealth, '?zone=eu', ''],
    ['the outbox of its roster', readOutbox, '?zone=eu', ''],
    ['the outbox of a gate there', readOutbox, '?zone=eu&tenant=acme', ''],
  ])('no other zone is called %s', async (_what, answer, query, name) => {
    let asked = 0;
    elsewhere.set('functions.test', async () => {
      asked += 1;
      return new Response('bytes');
    });
    expect(await readRefusal(await call(answer, query, name))).toMatchObject({ code: 'zone_unserved' });
    expect(asked).toBe(0);
    await call(answer, query.replace('eu', 'us'), name.replace('eu', 'us'));
    await call(answer, query, name, 'operate', ['eu', 'us']);
    expect(asked).toBe(answer === readOutbox ? 0 : 2);
  });

  it('each zone finds its own log in the list', async () => {
    const zonesIn = async (zones: string[]) => {
      const { data } = (await (await call(listLogs, '', '', 'audit', zones)).json()) as { data: { zone: string }[] };
      return data.map(({ zone }) => zone);
    };
    expect(await zonesIn(['us'])).toEqual(['us']);
    expect(await zonesIn(['eu', 'us'])).toEqual(['eu', 'us']);
  });

  it('lists all years, or this year while the functions are unavailable', async () => {
    const years = [
      { year: 2027, first: 2, size: 9, closed: false },
      { year: 2026, first: 1, size: 300, closed: true },
    ];
    const asked: string[] = [];
    elsewhere.set('functions.test', async (request) => {
      const { pathname } = new URL(request.url);
      asked.push(pathname);
      return pathname.endsWith('/eu') ? new Response(null, { status: 503 }) : Response.json({ data: years });
    });
    const list = async (query: string, zones = ['us']) => {
      const answer = await call(listLogs, query, '', 'audit', zones);
      return ((await answer.json()) as { data: Record<string, unknown>[] }).data;
    };
    const [silent, newest, closed, ...none] = await list('', ['eu', 'us']);
    expect(newest).toMatchObject({
      zone: 'us',
      year: 2027,
      origin: 'audit.example/us/2027',
      first: 2,
      size: 9,
      state: 'open',
    });
    expect(closed).toMatchObject({ year: 2026, size: 300, state: 'closed', prefix: '/v1/audit/log/us/2026' });
    expect(closed?.vkey).toMatch(/^audit\.example\/us\/2026\+/);
    expect(silent).toMatchObject({ zone: 'eu', year: new Date().getUTCFullYear(), state: 'unknown' });
    expect(none).toEqual([]);
    expect(asked.sort()).toEqual(['/api/audit/log/eu', '/api/audit/log/us']);
    expect((await list('?zone=us')).map(({ year }) => year)).toEqual([2027, 2026]);
    expect(await readRefusal(await call(listLogs, '?zone=eu', '', 'audit', ['us']))).toMatchObject({
      code: 'zone_unserved',
    });
    // This year's log, without any entry.
    elsewhere.set('functions.test', async () => Response.json({ data: [] }));
    expect(await list('?zone=us')).toMatchObject([{ year: new Date().getUTCFullYear(), size: 0, state: 'open' }]);
  });

  it('refuses too many concurrent reads', async () => {
    const error = { reason: 'allowance_concurrent', params: { limit: 4 } };
    elsewhere.set('functions.test', async () => Response.json({ error }, { status: 429 }));
    for (const answer of [await call(readLog, '', 'us/2026/receipt/1', 'audit'), await call(listLogs, '', '', 'audit')])
      expect(await readRefusal(answer)).toMatchObject({ status: 429, code: 'allowance_concurrent' });
  });

  it('announces an operator to the functions for entries only', async () => {
    const told: unknown[] = [];
    elsewhere.set('functions.test', async (request) => {
      told.push(decodeJwt(request.headers.get('authorization')?.slice('Bearer '.length) ?? '').operate);
      return new Response('bytes');
    });
    for (const path of ['tile/entries/000', 'tile/0/000', 'checkpoint']) await call(readLog, '', `us/2026/${path}`);
    expect(told).toEqual([true, undefined, undefined]);
  });
});
