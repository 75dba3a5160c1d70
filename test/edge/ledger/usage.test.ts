import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { listedUsage } from '../../../edge/jobs/list-usage.ts';
import { createEvent } from '../../../edge/ledger/create-event.ts';
import type { Gate } from '../../../edge/ledger/gate.ts';
import { monthOf, type UsageRow } from '../../../edge/ledger/usage.ts';
import type { AuditEvent } from '../../../shared/audit/event.ts';
import { ask, startAgent, upload } from '../../fake/network.ts';
import { makeToken } from '../authority.ts';

const NOVEMBER = Date.UTC(2026, 10, 30, 23, 59);
const DECEMBER = Date.UTC(2026, 11, 1);

function ended(request: string, at: number, more: { audioSeconds?: number; reason?: string } = {}): AuditEvent {
  const event = { tenant: 't', request, action: 'transcribe', class: 'default', status: 200 } as const;
  return createEvent({ type: 'inference.complete', ...event, ...more }, at);
}
const routed = (request: string, pool: string, at: number): AuditEvent =>
  createEvent({ type: 'route', tenant: 't', request, attempt: 1, pool, agent: 'a', zone: 'eu', why: 'w' }, at);

/** Writes events at a new gate, each list in a call of its own, and returns the usage of two months. */
async function write(...lists: readonly AuditEvent[][]): Promise<[UsageRow[], UsageRow[]]> {
  const gate = env.GATE.getByName(`tenant-${crypto.randomUUID()}/eu`);
  return runInDurableObject<Gate, [UsageRow[], UsageRow[]]>(gate, (instance) => {
    for (const events of lists) instance.apply([{ kind: 'record', mode: 'strict', events }]);
    return [instance.usage('2026-11'), instance.usage('2026-12')];
  });
}

describe('A1 the usage of a tenant', () => {
  it('A1 is counted by month and pool when its end is written', async () => {
    const [november, december] = await write(
      [routed('one', 'aks', NOVEMBER), ended('one', NOVEMBER, { audioSeconds: 4 }), ended('two', NOVEMBER)],
      [routed('three', 'aks', NOVEMBER), ended('three', NOVEMBER, { audioSeconds: 2.5 })],
      [routed('four', 'eks', DECEMBER), ended('four', DECEMBER, { audioSeconds: 1 })],
    );
    expect(november).toEqual([
      { pool: '', requests: 1, seconds: 0 },
      { pool: 'aks', requests: 2, seconds: 6.5 },
    ]);
    expect(december).toEqual([{ pool: 'eks', requests: 1, seconds: 1 }]);
  });

  it('A1 counts an end once that is reported again, and no refused request', async () => {
    const end = ended('one', NOVEMBER, { audioSeconds: 4 });
    const refused = ended('two', NOVEMBER, { reason: 'no_pool' });
    const lost = ended('three', NOVEMBER, { reason: 'client_gone', audioSeconds: 3 });
    const [november] = await write([end, end], [end, refused], [lost]);
    expect(november).toEqual([{ pool: '', requests: 1, seconds: 7 }]);
  });

  it('A1 reads an unused gate without creating its storage', async () => {
    const gate = env.GATE.getByName(`tenant-${crypto.randomUUID()}/eu`);
    expect(await gate.usage('2026-11')).toEqual([]);
    expect((await gate.outbox(0, 1)).epoch).toBe('');
  });
});

describe('A1 the list of usage', () => {
  const list = async (query: string, scope = 'operate') => {
    const authorization = `Bearer ${await makeToken({ scope })}`;
    return ask(`/v1/usage${query}`, { headers: { authorization } });
  };

  it('A1 has every tenant of every zone, in pages', async () => {
    const model = `model-${crypto.randomUUID().slice(0, 8)}`;
    const { pool } = await startAgent(model);
    const tenant = `t-${crypto.randomUUID()}`;
    const token = await makeToken({ tenant, zones: ['us', 'eu'] });
    expect((await upload({ token, fields: [['model', model]] })).status).toBe(200);
    const month = monthOf(Date.now());
    const rows = async () => {
      const first = listedUsage.strict().parse(await (await list(`?month=${month}`)).json());
      expect(first).toMatchObject({ month, next: 'us/' });
      const second = listedUsage.parse(await (await list(`?month=${month}&after=us/`)).json());
      expect(second.next).toBeUndefined();
      return [...first.data, ...second.data].filter((row) => row.tenant === tenant);
    };
    await expect
      .poll(rows, { timeout: 8_000, interval: 50 })
      .toEqual([{ tenant, zone: 'eu', pool, requests: 1, seconds: 8.47 }]);
  });

  it.each([
    ['?month=2026-13', 'operate', 400],
    ['?month=', 'operate', 400],
    ['?after=eu', 'operate', 400],
    ['?after=mars/', 'operate', 403],
    ['', 'audit', 403],
  ])('A1 refuses %s with the scope %s', async (query, scope, status) => {
    expect((await list(query, scope)).status).toBe(status);
  });
});
