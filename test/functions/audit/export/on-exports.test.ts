import { HttpRequest, type HttpResponseInit } from '@azure/functions';
import { beforeAll, describe, expect, it } from 'vitest';
import type { ExportContext } from '../../../../functions/audit/export/export-context.ts';
import { onCreate, onFile, onList, onSee } from '../../../../functions/audit/export/on-exports.ts';
import { onStream, type ReportStream } from '../../../../functions/audit/export/on-stream.ts';
import type { EdgeHandler } from '../../../../functions/caller/from-edge.ts';
import { exportStatus, streamPage } from '../../../../shared/audit/bundle/contract.ts';
import { readCursor } from '../../../../shared/audit/bundle/cursor.ts';
import type { EventDraft } from '../../../../shared/audit/event.ts';
import { isPlain } from '../../../../shared/audit/plain-members.ts';
import { verifyBundle } from '../../../../shared/audit/verify/verify-bundle.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no } from '../../../../shared/result.ts';
import { makeCallers } from '../../callers.ts';
import { ExportedLog } from './exported-log.ts';

const callers = await makeCallers();
let log: ExportedLog;
let desk: ExportContext;

beforeAll(async () => {
  log = new ExportedLog();
  log.now = Date.now();
  // A token is of this minute; the log's clock runs ahead of it.
  desk = { ...log.desk, settings: callers.settings, now: Date.now };
  await log.write('ann', 20);
  await log.write('bob', 300);
  await log.write('ann', 5);
});

async function ask(
  question: (desk: ExportContext | undefined) => EdgeHandler,
  tenant: string,
  more: { params?: Record<string, string>; query?: Record<string, string>; body?: unknown; token?: string } = {},
): Promise<HttpResponseInit> {
  const { params = {}, query = {}, body, token = await callers.edgeToken(tenant) } = more;
  const request = new HttpRequest({
    url: 'http://functions.test/',
    method: body === undefined ? 'GET' : 'POST',
    params: { zone: 'eu', ...params },
    query,
    headers: { authorization: `Bearer ${token}` },
    ...(body !== undefined && { body: { string: JSON.stringify(body) } }),
  });
  return question(desk)(request);
}

const asked = { tenant: 'ann', request: 'r1', purpose: 'audit', formats: ['csv'], redaction: 'full', query: {} };

describe('A21 endpoints for exports', () => {
  it('makes one, lists it, shows its files and gives them, and is on record', async () => {
    const made = exportStatus.parse((await ask(onCreate, 'ann', { body: asked })).jsonBody);
    expect(made).toMatchObject({ state: 'accepted', tenant: 'ann', zone: 'eu' });
    await log.finish({ tenant: 'ann', id: made.id } as never);
    const place = { tenant: 'ann', id: made.id };
    const seen = exportStatus.parse((await ask(onSee, 'ann', { params: place })).jsonBody);
    expect(seen).toMatchObject({ state: 'done', entries: 27 });
    const listed = (await ask(onList, 'ann', { params: { tenant: 'ann' } })).jsonBody as { data: { id: string }[] };
    expect(listed.data.map(({ id }) => id)).toEqual([made.id]);
    const files = new Map<string, Uint8Array>();
    for (const { path, bytes } of seen.files ?? []) {
      const { status, body } = await ask(onFile, 'ann', { params: { ...place, path } });
      expect([status, (body as Uint8Array).length]).toEqual([200, bytes]);
      files.set(path, body as Uint8Array);
    }
    const bundle = { list: async () => [...files.keys()], read: async (path: string) => files.get(path) };
    expect((await verifyBundle(bundle, { now: log.now })).verdict).toBe('unwitnessed');
    await log.commit();
    const page = streamPage.parse(
      (await ask((one) => onStream(one, undefined), 'ann', { params: { tenant: 'ann' } })).jsonBody,
    );
    // Each of the reads: this one, the list, and its files.
    expect(page.data.slice(-4).map(({ type }) => type)).toEqual([
      'auricle.export.create',
      ...['auricle.access.audit', 'auricle.access.audit', 'auricle.export.read'],
    ]);
  });

  it('records requester and reader in the log, each hidden by commitment', async () => {
    const [asker, reader] = [`c1:${'a'.repeat(64)}`, `c1:${'b'.repeat(64)}`];
    const drafts: EventDraft[] = [];
    const own = {
      ...desk,
      report(zone: string, draft: EventDraft) {
        drafts.push(draft);
        return log.desk.report(zone, draft);
      },
    };
    const by = async (subject: string) => ({ token: await callers.edgeToken('ann', { subject }) });
    const through = (question: typeof onSee) => () => question(own);
    const made = exportStatus.parse(
      (await ask(through(onCreate), 'ann', { body: asked, ...(await by(asker)) })).jsonBody,
    );
    await log.finish({ tenant: 'ann', id: made.id } as never);
    const params = { tenant: 'ann', id: made.id, path: 'entries/000000.ndjson' };
    const { files = [] } = exportStatus.parse((await ask(through(onSee), 'ann', { params })).jsonBody);
    const file = { params: { ...params, path: files[0]?.path ?? '' } };
    for (const subject of [asker, asker, reader])
      await ask(through(onFile), 'ann', { ...file, ...(await by(subject)) });
    expect(drafts.map((draft) => [draft.type, 'subject' in draft && draft.subject])).toEqual([
      ['export.create', asker],
      ['export.read', asker],
      ['export.read', reader],
    ]);
    for (const type of ['export.create', 'export.read']) expect(isPlain(type, 'subject')).toBe(false);
    const named = { token: await callers.edgeToken('ann', { subject: 'ann@example.org' }) };
    expect(await ask(onList, 'ann', { params: { tenant: 'ann' }, ...named })).toMatchObject({ status: 401 });
  });

  it('other tenants and other files get 404', async () => {
    const made = exportStatus.parse((await ask(onCreate, 'ann', { body: asked })).jsonBody);
    const row = await log.finish({ tenant: 'ann', id: made.id } as never);
    const place = { tenant: 'ann', id: row.id };
    const unknown = { status: 404, jsonBody: { error: { reason: 'export_unknown' } } };
    expect(await ask(onSee, 'bob', { params: place })).toMatchObject(unknown);
    expect(await ask(onSee, 'bob', { params: { ...place, tenant: 'bob' } })).toMatchObject(unknown);
    for (const path of ['../../eu/state', '.job/000000', 'nothing.txt', 'checkpoints/../manifest.json', '']) {
      expect(await ask(onFile, 'ann', { params: { ...place, path } }), path).toMatchObject(unknown);
    }
    expect(await ask(onCreate, 'bob', { body: asked })).toMatchObject({ status: 400 });
    expect(await ask(onCreate, 'ann', { body: asked, params: { zone: 'mars' } })).toMatchObject({
      jsonBody: { error: { reason: 'zone_unserved' } },
    });
    expect(await ask(onSee, 'ann', { params: place, token: 'nonsense' })).toMatchObject({ status: 401 });
    expect(await onList(undefined)(new HttpRequest({ url: 'http://x/', method: 'GET' }))).toMatchObject({
      status: 404,
    });
  });
});

describe('A21 the stream of a tenant', () => {
  const answerOf = (from: string | undefined, tenant = 'ann', tell?: ReportStream) =>
    ask((one) => onStream(one, tell), tenant, { params: { tenant }, query: from === undefined ? {} : { from } });
  const page = async (from?: string, tenant = 'ann') => streamPage.parse((await answerOf(from, tenant)).jsonBody);
  const year = new Date().getUTCFullYear();

  it('returns full leaves with place and hash, of its tenant only', async () => {
    const { data, next, ended } = await page();
    expect([ended, readCursor(next)?.year]).toEqual([true, year]);
    const own = data.filter(({ subject }) => subject !== undefined);
    expect(new Set(own.map(({ subject }) => subject))).toEqual(new Set(['ann']));
    const numbers = own.map(({ data: { leaf } }) => (leaf as { tseq: number }).tseq);
    expect(numbers).toEqual(numbers.map((_, at) => at + 1));
    expect(data.every(({ data: one }) => /^[0-9a-f]{64}$/.test(one.leaf_hash))).toBe(true);
  });

  it('resumes at any index, ends with the log, and refuses later indexes', async () => {
    const all = (await page()).data.map(({ data }) => data.index);
    for (const at of [1, 7, 21, 300, 325]) {
      for (const cursor of [`${at}`, `${year}-${at}`])
        expect((await page(cursor)).data.map(({ data }) => data.index)).toEqual(all.filter((index) => index >= at));
    }
    const { next } = await page();
    expect(await page(next)).toMatchObject({ data: [], next, ended: true });
    const after = `${year}-${(readCursor(next)?.index ?? 0) + 1}`;
    for (const wrong of ['-1', 'x', `${year}-`, after, '1999-0'])
      expect(await answerOf(wrong), wrong).toMatchObject({
        ...{ status: 400, jsonBody: { error: { reason: 'field_invalid' } } },
      });
  });

  it('is refused when the reader cannot be recorded', async () => {
    const refused: ReportStream = async () => no(refuse('audit_unavailable'));
    const answer = await answerOf(undefined, 'ann', refused);
    expect(answer.status).toBe(503);
    expect(JSON.stringify(answer)).not.toContain('leaf_hash');
  });

  it('goes on from the end of a year into the next one', async () => {
    const other = new ExportedLog();
    await other.write('ann', 2);
    other.now = Date.UTC(2027, 0, 1, 1);
    await other.commit();
    await other.write('ann', 2);
    const [was, wasDesk] = [log, desk];
    [log, desk] = [other, { ...other.desk, settings: callers.settings, now: Date.now }];
    try {
      const first = await page('2026-0');
      expect(first.data.at(-1)?.type).toBe('auricle.shard.close');
      expect(first).toMatchObject({ year: 2026, next: '2027-0', ended: false });
      const second = await page(first.next);
      expect(second.data[0]?.type).toBe('auricle.shard.open');
      const numbers = [...first.data, ...second.data].flatMap(
        ({ data }) => (data.leaf as { tseq?: number }).tseq ?? [],
      );
      expect(numbers).toEqual([1, 2, 3, 4]);
      expect(second).toMatchObject({ year: 2027, ended: true });
      // A number alone is of the newest log, and never one of the year before.
      expect((await page('0')).year).toBe(2027);
    } finally {
      [log, desk] = [was, wasDesk];
    }
  });
});
