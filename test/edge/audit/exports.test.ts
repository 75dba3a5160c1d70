// Requests of the edge to the functions about exports and the stream of leaves: tenant, zone and answer.
import { env } from 'cloudflare:workers';
import { decodeJwt } from 'jose';
import { describe, expect, it } from 'vitest';
import { callAuditFunctions } from '../../../edge/audit/call-functions.ts';
import { createExport, listExports, readExport } from '../../../edge/audit/exports.ts';
import { readLog } from '../../../edge/audit/read-log.ts';
import { streamLeaves } from '../../../edge/audit/stream-leaves.ts';
import { realRuntime } from '../../../edge/clock.ts';
import type { PathParams, RequestContext } from '../../../edge/context.ts';
import type { Bindings } from '../../../edge/settings.ts';
import { elsewhere, readRefusal } from '../../fake/network.ts';
import { makeContext } from '../../fake/request-context.ts';
import { makeSettings } from '../../fake/settings.ts';
import { makeToken } from '../authority.ts';

const ID = 'eu-01a201f4-2654-711a-9e85-3ba66254767e';
const status = {
  ...{ id: ID, tenant: 'acme', zone: 'eu', state: 'accepted', created: '2026-06-01T00:00:00.000Z', purpose: 'audit' },
  ...{ redaction: 'full', formats: ['csv'], entries: 0, scanned: 0 },
};
const log = { origin: 'audit.example', key: btoa('k'.repeat(32)) };
const settings = () =>
  makeSettings({
    AUDIT_LOGS: JSON.stringify({ eu: log }),
    FUNCTIONS_URLS: JSON.stringify({ eu: 'http://functions-eu.test' }),
  });

type Answer = (request: Request, context: RequestContext, params: PathParams) => Response | Promise<Response>;

async function call(
  answer: Answer,
  given: { body?: unknown; query?: string; name?: string; headers?: Record<string, string>; scope?: string } = {},
  claims: Record<string, unknown> = {},
): Promise<Response> {
  const { body, query = '', name = '', headers = {}, scope = 'audit' } = given;
  const { context: bare } = makeContext({} as never, realRuntime, settings());
  const context = { ...bare, env: env as unknown as Bindings };
  const token = await makeToken({ scope, tenant: 'acme', zones: ['eu', 'us'], ...claims });
  const request = new Request(`http://edge.test/v1/audit/x${query}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return answer(request, context, { name });
}

interface ZoneRequest {
  readonly line: string;
  readonly body: unknown;
  readonly subject?: unknown;
}

/** The functions, which answer with this; what they are asked. */
function office(answer: (url: URL) => Response): ZoneRequest[] {
  const asked: ZoneRequest[] = [];
  elsewhere.set('functions-eu.test', async (request) => {
    const url = new URL(request.url);
    const body = request.method === 'POST' ? await request.json() : undefined;
    const { subject } = decodeJwt(request.headers.get('authorization')?.slice('Bearer '.length) ?? '');
    asked.push({
      line: `${request.method} ${url.pathname}${url.search}`,
      body,
      ...(subject !== undefined && { subject }),
    });
    return answer(url);
  });
  return asked;
}

describe('A21 exports at the edge', () => {
  it('requests an export from the functions and returns its location', async () => {
    const asked = office(() => Response.json(status, { status: 202 }));
    const body = {
      purpose: 'audit',
      year: 2026,
      from: '2026-01-01',
      to: '2026-02-01T00:00:00Z',
      formats: ['csv'],
      known_size: 9,
    };
    const made = await call(createExport, { body });
    expect([made.status, made.headers.get('location')]).toEqual([202, `/v1/audit/exports/${ID}`]);
    expect(await made.json()).toEqual(status);
    const query = { year: 2026, from: Date.UTC(2026, 0, 1), to: Date.UTC(2026, 1, 1) };
    expect(asked).toEqual([
      {
        subject: expect.stringMatching(/^c1:/),
        line: 'POST /api/audit/exports/eu',
        body: expect.objectContaining({ tenant: 'acme', purpose: 'audit', query, redaction: 'full', known_size: 9 }),
      },
    ]);
  });

  it('refuses malformed queries, other zones and missing scopes', async () => {
    for (const body of [
      {},
      { purpose: '' },
      { purpose: 'case\u001b[2J7' },
      { purpose: 'one\ntwo' },
      { purpose: 'a', redaction: 'some' },
      { purpose: 'a', formats: ['xml'] },
      { purpose: 'a', more: 1 },
      { purpose: 'a', year: 26 },
      { purpose: 'a', year: '2026' },
    ]) {
      expect((await call(createExport, { body })).status, JSON.stringify(body)).toBe(400);
    }
    expect(await readRefusal(await call(createExport, { body: { purpose: 'a', zone: 'us' } }))).toMatchObject({
      code: 'zone_unserved',
    });
    expect((await call(createExport, { body: { purpose: 'a' }, scope: 'transcribe' })).status).toBe(403);
    expect((await call(streamLeaves, { scope: 'transcribe' })).status).toBe(403);
  });

  it('lists and shows them, and hands files on', async () => {
    const asked = office((url) => {
      if (url.pathname.includes('/files/')) return new Response('bytes');
      return url.pathname.endsWith(ID) ? Response.json(status) : Response.json({ data: [status] });
    });
    expect(await (await call(listExports)).json()).toEqual({ object: 'list', data: [status] });
    expect(await (await call(readExport, { name: ID })).json()).toEqual(status);
    const file = await call(readExport, { name: `${ID}/files/derived/events.csv` });
    expect([await file.text(), file.headers.get('x-content-type-options')]).toEqual(['bytes', 'nosniff']);
    expect(asked.map(({ line }) => line)).toEqual([
      'GET /api/audit/exports/eu/acme',
      `GET /api/audit/exports/eu/acme/${ID}`,
      `GET /api/audit/exports/eu/acme/${ID}/files/derived/events.csv`,
    ]);
  });

  it('names readers by commitment, and refuses while it is unavailable', async () => {
    const asked = office((url) => (url.pathname.includes('/files/') ? new Response('x') : Response.json(status)));
    const officer = { sub: 'officer' };
    await call(createExport, { body: { purpose: 'a' } }, officer);
    await call(readExport, { name: `${ID}/files/derived/events.csv` }, officer);
    await call(readLog, { name: 'eu/2026/checkpoint' }, officer);
    await call(readExport, { name: ID }, { sub: 'clerk' });
    const subjects = asked.map(({ subject }) => subject);
    for (const subject of subjects) expect(subject).toMatch(/^c1:[0-9a-f]{64}$/);
    expect(subjects.slice(0, 3)).toEqual(Array(3).fill(subjects[0]));
    expect(subjects[3]).not.toBe(subjects[0]);
    const away = { getByName: () => ({ commitmentOf: () => Promise.reject(new Error('away')) }) };
    const { context } = makeContext({} as never, realRuntime, settings());
    const own = { ...context, env: { ...context.env, GATE: away } as never };
    const question = { zone: 'eu', path: '/exports/eu/acme' };
    expect(await callAuditFunctions(question, { tenant: 'acme', subject: 'officer' }, own)).toMatchObject({
      ok: false,
    });
    expect(asked).toHaveLength(4);
  });

  it('passes on a refusal of the functions; a non-export is unknown', async () => {
    office(() => Response.json({ error: { reason: 'exports_open' } }, { status: 429 }));
    expect(await readRefusal(await call(createExport, { body: { purpose: 'a' } }))).toMatchObject({
      code: 'exports_open',
    });
    office(() => Response.json({ error: { reason: 'token_invalid' } }, { status: 401 }));
    expect(await readRefusal(await call(readExport, { name: ID }))).toMatchObject({ code: 'audit_unreachable' });
    for (const name of ['nothing', ID.replace('eu', 'us'), `${ID}/../x`]) {
      expect(await readRefusal(await call(readExport, { name })), name).toMatchObject({ code: 'export_unknown' });
    }
  });

  it.each([
    '../../../../../log/eu/2026/tile/entries/000',
    '..',
    './entries.ndjson',
    'proofs/../../../../eu/globex/x',
    'a?from=0',
    'a#b',
    'a%2fb',
    '\\..\\health',
    '/admin',
    'a//b',
  ])('does not ask the functions for the file %j', async (path) => {
    const asked = office(() => Response.json({}));
    const name = `${ID}/files/${path}`;
    expect(await readRefusal(await call(readExport, { name }))).toMatchObject({ code: 'export_unknown' });
    expect(asked).toEqual([]);
  });

  it.each(['/../admin/host/status', '/exports/../x', '/a b', '/%2e%2e/x'])(
    'asks for no address that is another one once it is read: %j',
    async (path) => {
      const asked = office(() => Response.json({}));
      const { context } = makeContext({} as never, realRuntime, settings());
      expect((await callAuditFunctions({ zone: 'eu', path }, { tenant: 'acme' }, context)).ok).toBe(false);
      expect(asked).toEqual([]);
    },
  );
});

describe('A21 the stream of leaves at the edge', () => {
  const leaf = (index: number) => ({
    ...{
      specversion: '1.0',
      id: `e${index}`,
      source: 'audit.example/eu/2026',
      type: 'auricle.route',
      time: '2026-01-01',
    },
    datacontenttype: 'application/json',
    data: { log: 'audit.example/eu/2026', index, leaf_hash: 'ab', leaf: {} },
  });
  const pages = () =>
    office((url) => {
      const [year, from = 0] = (url.searchParams.get('from') ?? '').split('-').map(Number);
      if (year === 2027) return Response.json({ data: [leaf(0)], year, next: '2027-1', ended: true });
      const data = [leaf(from), leaf(from + 1)];
      return Response.json({ data, year, next: from < 6 ? `2026-${from + 2}` : '2027-0', ended: false });
    });

  it('pages through the years until the log ends', async () => {
    const asked = pages();
    const answer = await call(streamLeaves, { query: '?from=2026-2&follow=false' });
    expect(answer.headers.get('content-type')).toBe('application/x-ndjson');
    const lines = (await answer.text()).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line).data.index)).toEqual([2, 3, 4, 5, 6, 7, 0]);
    expect(asked.map(({ line }) => line)).toEqual(
      ['2026-2', '2026-4', '2026-6', '2027-0'].map((at) => `GET /api/audit/stream/eu/acme?from=${at}`),
    );
  });

  it('goes on after the last event that a browser has', async () => {
    const asked = pages();
    const headers = { accept: 'text/event-stream', 'last-event-id': '2026-5' };
    const answer = await call(streamLeaves, { query: '?follow=false', headers });
    expect(await answer.text()).toMatch(/^id: 2026-6\nevent: leaf\ndata: \{.*\}\n\nid: 2026-7\n[\s\S]*\nid: 2027-0\n/);
    expect(asked).toHaveLength(2);
    expect((await call(streamLeaves, { query: '?from=x' })).status).toBe(400);
  });
});
