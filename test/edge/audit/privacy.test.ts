// Requests of the edge to the functions about erasures, holds and searches: tenant, scope and commitments.
import { env } from 'cloudflare:workers';
import { beforeEach, describe, expect, it } from 'vitest';
import { eraseSubject, listHolds, releaseHold, setHold } from '../../../edge/audit/erase.ts';
import { acceptGap, listGaps } from '../../../edge/audit/gaps.ts';
import { searchAudit } from '../../../edge/audit/search.ts';
import { realRuntime } from '../../../edge/clock.ts';
import type { PathParams, RequestContext } from '../../../edge/context.ts';
import { type Bindings, readSettings } from '../../../edge/settings.ts';
import { FakeFunctions } from '../../fake/functions.ts';
import { readRefusal } from '../../fake/network.ts';
import { makeContext } from '../../fake/request-context.ts';
import { makeToken } from '../authority.ts';

const C1 = /^c1:[0-9a-f]{64}$/;
const id = '017f22e2-79b0-4cc3-98c4-dc0c0c07398f';
const log = { origin: 'audit.test', key: btoa('k'.repeat(32)) };

let offices: FakeFunctions[];
beforeEach(() => {
  offices = [new FakeFunctions('eu'), new FakeFunctions('us')];
});

type Answer = (request: Request, context: RequestContext, params: PathParams) => Response | Promise<Response>;

async function call(
  answer: Answer,
  given: { body?: unknown; query?: string; name?: string; headers?: Record<string, string> } = {},
  claims: Record<string, unknown> = {},
): Promise<Response> {
  const token = await makeToken({ scope: 'compliance audit', tenant: 'acme', zones: ['eu', 'us'], ...claims });
  const bindings = env as unknown as Bindings;
  const auditLogs = new Map(['eu', 'us'].map((zone) => [zone, log]));
  const settings = { ...readSettings(bindings), auditLogs };
  const { context } = makeContext({} as never, realRuntime, settings);
  const own = { ...context, env: bindings };
  const { body, query = '', name = '', headers = {} } = given;
  const request = new Request(`http://edge.test/v1/audit/x${query}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return answer(request, own, { name });
}

const asked = () => offices.flatMap((office) => office.requests);
const done = { outcome: 'done', basis: 'gdpr-17', erased: ['x'], count: 2 };

describe('C12 erasing and holding at the edge', () => {
  it('names subject and caller in each zone by the commitments of that gate', async () => {
    for (const office of offices) office.plain = () => Response.json(done);
    const body = { subject: 'ann', basis: 'gdpr-17' };
    const answer = await call(eraseSubject, { body }, { sub: 'officer' });
    expect(await answer.json()).toMatchObject({
      data: [
        { zone: 'eu', ...done },
        { zone: 'us', ...done },
      ],
    });
    expect(asked().map(({ line, claims }) => [line, claims.tenant])).toEqual([
      ['POST /api/audit/eu/erasures', 'acme'],
      ['POST /api/audit/us/erasures', 'acme'],
    ]);
    const [eu, us] = asked().map((one) => one.body as { subjects: string[]; by: string });
    for (const one of [eu, us]) {
      expect(one?.subjects.length).toBeGreaterThan(0);
      for (const commitment of [...(one?.subjects ?? []), one?.by ?? '']) expect(commitment).toMatch(C1);
    }
    // Each gate has a salt of its own.
    expect(eu?.subjects).not.toEqual(us?.subjects);
    expect(JSON.stringify(asked().map((one) => one.body))).not.toMatch(/ann|officer/);
    await call(eraseSubject, { body: { ...body, zone: 'eu' } }, { sub: 'officer' });
    expect(asked()[1]?.body).toMatchObject({ subjects: eu?.subjects });
  });

  it('needs its own scope and the tenant of the token', async () => {
    const body = { subject: 'ann', basis: 'gdpr-17' };
    for (const scope of ['audit', 'operate', 'transcribe']) {
      const refused = await call(eraseSubject, { body }, { scope });
      expect(await readRefusal(refused)).toMatchObject({ status: 403, code: 'scope_missing' });
    }
    expect(await readRefusal(await call(setHold, { body: { reason: 'x' } }, { scope: 'audit' }))).toMatchObject({
      code: 'scope_missing',
    });
    expect(asked()).toEqual([]);
    for (const wrong of [
      {},
      { subject: 'ann' },
      { basis: 'gdpr-17' },
      { ...body, basis: '<b>' },
      { ...body, basis: 'because' },
      { ...body, tenant: 'x' },
    ]) {
      expect((await call(eraseSubject, { body: wrong })).status).toBe(400);
    }
    expect(asked()).toEqual([]);
    expect(
      await readRefusal(await call(eraseSubject, { body: { ...body, zone: 'us' } }, { zones: ['eu'] })),
    ).toMatchObject({ code: 'zone_unserved' });
  });

  it('a hold has one id in all zones; a release names its zone', async () => {
    const hold = { id, scope: 'tenant', reason: 'case 7', at: 1 };
    for (const office of offices) office.plain = () => Response.json(hold);
    await call(setHold, { body: { reason: 'case 7' } });
    const ids = asked().map((one) => (one.body as { id: string }).id);
    expect([ids.length, new Set(ids).size]).toEqual([2, 1]);
    for (const office of offices) office.plain = () => Response.json({ data: [hold] });
    expect(await (await call(listHolds)).json()).toMatchObject({
      data: [
        { zone: 'eu', id },
        { zone: 'us', id },
      ],
    });
    const [eu, us] = offices as [FakeFunctions, FakeFunctions];
    const unknown = () => Response.json({ error: { reason: 'hold_unknown' } }, { status: 404 });
    eu.plain = () => Response.json({ id });
    us.plain = unknown;
    const released = await call(releaseHold, { body: { reason: 'over' }, name: id });
    expect(await released.json()).toMatchObject({ data: [{ zone: 'eu', id }] });
    eu.plain = unknown;
    const gone = await call(releaseHold, { body: { reason: 'over' }, name: id });
    expect(await readRefusal(gone)).toMatchObject({ status: 404, code: 'hold_unknown' });
    expect((await call(releaseHold, { body: { reason: 'over' }, name: '..%2f..' })).status).toBe(404);
  });
});

describe('C12 search at the edge', () => {
  it('uses the tenant of the token; no subject is in a URL', async () => {
    for (const office of offices) office.plain = () => Response.json({ zone: office.zone, hits: [] });
    const headers = { 'x-auricle-subject': encodeURIComponent('Ann Ä') };
    const answer = await call(searchAudit, { query: '?model=m&day=2026-11-22&limit=5', headers }, { scope: 'audit' });
    expect(await answer.json()).toEqual({
      object: 'list',
      data: [
        { zone: 'eu', hits: [] },
        { zone: 'us', hits: [] },
      ],
    });
    const [first] = asked();
    expect(first?.line).toBe('POST /api/audit/eu/search');
    expect(first?.claims.tenant).toBe('acme');
    expect(first?.body).toMatchObject({ model: 'm', day: '20261122', limit: 5 });
    for (const query of ['?day=22.11.2026', '?limit=0', '?limit=51', '?tenant=other', '?commitment=ann']) {
      expect((await call(searchAudit, { query }, { scope: 'audit' })).status, query).toBe(400);
    }
    expect(asked()).toHaveLength(2);
    expect((await call(searchAudit, {}, { scope: 'transcribe' })).status).toBe(403);
  });

  it('A21 asks to disclose entries by their place', async () => {
    for (const office of offices) office.plain = () => Response.json({ zone: office.zone, hits: [] });
    const query = '?zone=eu&year=2026&index=3,14&disclose=true';
    expect((await call(searchAudit, { query }, { scope: 'audit' })).status).toBe(200);
    expect(asked()[0]?.body).toEqual({ year: 2026, indexes: [3, 14], disclose: true });
    for (const wrong of ['?index=3', '?year=2026', '?year=2026&index=3-5', '?disclose=yes'])
      expect((await call(searchAudit, { query: wrong }, { scope: 'audit' })).status, wrong).toBe(400);
  });
});

describe('C9 gaps of the log at the edge', () => {
  const gap = { gap: '2026-7', outbox: 'gate/acme/eu', epoch: 'e', from: 3, to: 4, at: 1 };
  const body = { zone: 'eu', gap: gap.gap, reason: 'restored from a backup' };

  it('are listed and accepted for operators, with name and reason', async () => {
    const [eu] = offices;
    if (!eu) throw new Error('no office');
    eu.plain = () => Response.json({ data: [gap] });
    expect(await (await call(listGaps, { query: '?zone=eu' }, { scope: 'operate' })).json()).toEqual({
      object: 'list',
      data: [{ zone: 'eu', ...gap }],
    });
    eu.plain = () => Response.json({ ...gap, accepted: { at: 5 } });
    const answer = await call(acceptGap, { body }, { scope: 'operate', sub: 'operator' });
    expect(await answer.json()).toEqual({ zone: 'eu', ...gap, accepted: { at: 5 } });
    expect(eu.requests.map(({ line }) => line)).toEqual(['GET /api/audit/eu/gaps', 'POST /api/audit/eu/gaps/accept']);
    expect(eu.requests[1]?.claims).toMatchObject({ operate: true });
    expect(eu.requests[1]?.body).toMatchObject({ gap: '2026-7', reason: body.reason, by: expect.stringMatching(C1) });
  });

  it('are refused without the scope, a reason or a place', async () => {
    for (const scope of ['audit', 'compliance'])
      expect(await readRefusal(await call(acceptGap, { body }, { scope }))).toMatchObject({ code: 'scope_missing' });
    const refused = async (given: object) =>
      (await readRefusal(await call(acceptGap, { body: given }, { scope: 'operate' }))).code;
    expect(await refused({ ...body, reason: undefined })).toBe('field_missing');
    expect(await refused({ ...body, gap: '7' })).toBe('field_invalid');
    expect(asked()).toEqual([]);
  });
});
