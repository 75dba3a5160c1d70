// Erasing, holds and search as the functions are asked about them: by the edge, and for the tenant of its token only.
import { HttpRequest, type HttpResponseInit } from '@azure/functions';
import { beforeEach, describe, expect, it } from 'vitest';
import { failedIn } from '../../../functions/audit/context/log-context.ts';
import { followLog } from '../../../functions/audit/entries/follow-log.ts';
import { subjectIndex } from '../../../functions/audit/entries/subject-rows.ts';
import * as erasing from '../../../functions/audit/erase/on-erase.ts';
import type { PrivacyContext } from '../../../functions/audit/erase/open-privacy.ts';
import { onSearch } from '../../../functions/audit/search/on-search.ts';
import { retainedUntil } from '../../../functions/audit/sidecar/retention.ts';
import { onRetention } from '../../../functions/retention/on-retention.ts';
import { refuse } from '../../../shared/refusal.ts';
import { no, ok } from '../../../shared/result.ts';
import { MemoryRows } from '../../fake/rows.ts';
import { makeCallers } from '../callers.ts';
import { deskOf, toldOf } from './erase-world.ts';
import { HiddenLog, ZONE } from './hidden-log.ts';

const callers = await makeCallers();
const ann = `c1:${'a'.repeat(64)}`;
const id = '017f22e2-79b0-4cc3-98c4-dc0c0c07398f';

let log: HiddenLog;
let desk: PrivacyContext;
let noted: string[];
let unwilling: boolean;
let lines: unknown[];
beforeEach(async () => {
  log = new HiddenLog();
  [noted, unwilling, lines] = [[], false, []];
  await log.write(log.event({ subject: ann, request: 'r1' }), log.event({ subject: ann, tenant: 'other' }));
  const rows = new MemoryRows();
  const failed = failedIn((line) => lines.push(line), ZONE);
  const zone = { ...deskOf(log), rows, index: subjectIndex(rows, ZONE), failed };
  const settings = callers.settings;
  desk = {
    // Tokens are of the real time.
    log: { settings, now: Date.now, log: (line: unknown) => lines.push(line) } as unknown as PrivacyContext['log'],
    rows,
    reads: {
      async note({ tenant, action, subject }) {
        if (unwilling) return no(refuse('audit_unavailable'));
        noted.push([tenant, action, ...(subject === undefined ? [] : [subject])].join(' '));
        return ok(undefined);
      },
    },
    zones: [zone],
    zone: (name) => (name === ZONE ? zone : undefined),
  };
});

type Handler = (given: PrivacyContext | undefined) => (request: HttpRequest) => Promise<HttpResponseInit>;

async function ask(
  handler: Handler,
  body?: unknown,
  given: { tenant?: string; params?: object; operate?: boolean; subject?: string } = {},
) {
  const { tenant = 'dev', params = {}, operate, subject } = given;
  const request = new HttpRequest({
    url: 'http://functions/api/audit',
    method: body === undefined ? 'GET' : 'POST',
    params: { zone: ZONE, ...params },
    headers: {
      authorization: `Bearer ${await callers.edgeToken(tenant, { ...(operate && { operate }), ...(subject !== undefined && { subject }) })}`,
    },
    ...(body !== undefined && { body: { string: JSON.stringify(body) } }),
  });
  const { status, jsonBody } = await handler(desk)(request);
  return { status, body: jsonBody as Record<string, unknown> };
}

describe('C12 endpoints for holds and erasures', () => {
  it('a hold is per tenant, and defers an erasure until its release', async () => {
    const hold = { id, subjects: [ann], reason: 'case 7', by: ann, request: 'r9' };
    expect(await ask(erasing.onHold, hold)).toMatchObject({ status: 200, body: { id, scope: 'subject' } });
    expect((await ask(erasing.onHolds)).body).toMatchObject({ data: [{ id, reason: 'case 7' }] });
    expect((await ask(erasing.onHolds, undefined, { tenant: 'other' })).body).toEqual({ data: [] });
    const erasure = { subjects: [ann], basis: 'gdpr-17', by: ann, request: 'r9' };
    expect((await ask(erasing.onErase, erasure)).body).toMatchObject({ outcome: 'deferred', basis: 'hold' });
    expect((await ask(erasing.onErasures)).body).toMatchObject({ data: [{ subject: ann, basis: 'gdpr-17' }] });
    expect((await ask(erasing.onErase, erasure, { tenant: 'other' })).body).toMatchObject({ outcome: 'done' });
    const release = { reason: 'over' };
    const theirs = await ask(erasing.onRelease, release, { tenant: 'other', params: { id } });
    expect(theirs).toMatchObject({ status: 404, body: { error: { reason: 'hold_unknown' } } });
    expect(await ask(erasing.onRelease, release, { params: { id } })).toMatchObject({ status: 200 });
    await onRetention(desk);
    expect((await ask(erasing.onErasures)).body).toEqual({ data: [] });
    expect(lines).toEqual([{ what: 'erased', zone: ZONE, entries: 1 }]);
  });

  it('a caller with two commitments is held, found and erased under both', async () => {
    const other = `c1:${'b'.repeat(64)}`;
    await log.write(log.event({ subject: other, request: 'r2' }));
    for (const zone of desk.zones) await followLog(zone);
    const subjects = [ann, other];
    await ask(erasing.onHold, { id, subjects, reason: 'case 7' });
    expect((await ask(erasing.onHolds)).body.data).toHaveLength(1);
    expect(await toldOf(log, 'hold.set')).toHaveLength(1);
    const { hits } = (await ask(onSearch, { subjects })).body as { hits: unknown[] };
    expect(hits).toHaveLength(2);
    await ask(erasing.onRelease, { reason: 'over' }, { params: { id } });
    expect(await toldOf(log, 'hold.release')).toHaveLength(1);
    expect((await ask(erasing.onErase, { subjects, basis: 'gdpr-17' })).body).toMatchObject({
      outcome: 'done',
      count: 2,
    });
    expect((await ask(onSearch, { subjects })).body).toMatchObject({ hits: [] });
    expect((await toldOf(log, 'erasure.exec')).map((leaf) => leaf.outcome)).toEqual(['done', 'done']);
  });

  it('a search is recorded under the requesting tenant before its answer', async () => {
    for (const zone of desk.zones) await followLog(zone);
    expect((await ask(onSearch, { request: 'r1' })).body.hits).toHaveLength(1);
    expect((await ask(onSearch, {}, { tenant: 'other', subject: ann })).body.hits).toHaveLength(1);
    expect(noted).toEqual(['dev search', `other search ${ann}`]);
    unwilling = true;
    expect(await ask(onSearch, { request: 'r1' })).toMatchObject({ status: 503 });
  });

  it('a malformed request is refused', async () => {
    const wrong: [Handler, unknown][] = [
      [erasing.onErase, { subjects: [], basis: 'gdpr-17' }],
      [erasing.onErase, { subjects: ['ann'], basis: 'gdpr-17' }],
      [erasing.onErase, { subjects: [ann], basis: '' }],
      [erasing.onErase, { subjects: [ann], basis: 'because' }],
      [erasing.onErase, { subjects: [ann], basis: 'other:' }],
      [erasing.onHold, { id: '../x', reason: 'x' }],
      [erasing.onHold, { id, reason: '' }],
      [erasing.onRelease, {}],
      [onSearch, { day: '2026-01-01' }],
    ];
    for (const [handler, body] of wrong) expect((await ask(handler, body)).status).toBe(400);
    expect(await ask(erasing.onHolds, undefined, { params: { zone: 'us' } })).toMatchObject({ status: 403 });
    const anonymous = new HttpRequest({ url: 'http://functions/', method: 'GET', params: { zone: ZONE } });
    expect(await erasing.onHolds(desk)(anonymous)).toMatchObject({ status: 401 });
    expect(await erasing.onHolds(undefined)(anonymous)).toMatchObject({ status: 404 });
  });

  it('a list of holds or erasures is recorded before its answer, else refused', async () => {
    await ask(erasing.onHolds);
    await ask(erasing.onErasures, undefined, { tenant: 'other' });
    expect(noted).toEqual(['dev holds', 'other erasures']);
    unwilling = true;
    expect((await ask(erasing.onHolds)).status).toBe(503);
    expect((await ask(erasing.onErasures)).status).toBe(503);
  });

  it('the timer ends what has been kept long enough, and says what fails', async () => {
    log.now = retainedUntil('standard', '202606');
    await onRetention(desk);
    expect(lines).toEqual([{ what: 'erased', zone: ZONE, entries: 2 }]);
    log.store.list = async () => Promise.reject(new Error('storage is away'));
    await onRetention(desk);
    expect(lines[1]).toEqual({ what: 'failed', zone: ZONE, detail: 'storage is away' });
  });
});
