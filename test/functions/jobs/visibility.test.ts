// Uploads and projects as a caller meets them whose token shows those of its subject or of its zones only.
import { HttpRequest } from '@azure/functions';
import { beforeEach, describe, expect, it } from 'vitest';
import type { EdgeHandler } from '../../../functions/caller/from-edge.ts';
import { createProject } from '../../../functions/jobs/create-project.ts';
import { type HttpContext, projectHandlers, uploadHandlers } from '../../../functions/jobs/http.ts';
import type { Settings } from '../../../functions/settings.ts';
import type { NewProject } from '../../../shared/jobs/project-contract.ts';
import { type Callers, makeCallers } from '../callers.ts';
import { Quiet } from './quiet.ts';

const PROJECT = '01890a5d-ac96-874b-bcce-b302099a80ff';

let quiet: Quiet;
let callers: Callers;
let desk: HttpContext & { scanRows?: number };
beforeEach(async () => {
  quiet = new Quiet();
  callers = await makeCallers();
  desk = { ...quiet.instant(), settings: callers.settings as unknown as Settings, now: Date.now };
});

interface Ask {
  readonly id?: string;
  readonly owner?: string;
  readonly zones?: readonly unknown[];
  readonly query?: Record<string, string>;
  readonly params?: Record<string, string>;
}

async function ask(handler: EdgeHandler, { id, owner, zones, query = {}, params = {} }: Ask) {
  const token = await (owner === undefined
    ? callers.edgeToken('acme', { ...(zones && { zones }) })
    : callers.ownerToken('acme', owner));
  const request = new HttpRequest({
    url: 'http://functions/api',
    method: 'GET',
    params: { tenant: 'acme', ...(id !== undefined && { id }), ...params },
    query,
    headers: { authorization: `Bearer ${token}` },
  });
  const { status, jsonBody } = await handler(request);
  return { status, body: jsonBody as Record<string, unknown> };
}

const project = (subject: string): NewProject => ({
  id: PROJECT,
  tenant: 'acme',
  subject,
  class: 'batch',
  model: 'm',
  zone: 'eu',
  project: { gaps: { segment: 0, block: 0 }, light: false, documents: [{ contentType: 'text/plain' }] },
});

describe('C4 A21 a token that shows one subject', () => {
  it.each([
    ['reading', 'get'],
    ['reading the transcript', 'open'],
    ['running again', 'rerun'],
    ['deleting', 'cancel'],
  ] as const)('does not know the upload of another: %s', async (_, handler) => {
    const { upload } = await quiet.granted({ subject: 'alice' });
    const { id } = upload;
    const unknown = { status: 404, body: { error: { reason: 'upload_unknown' } } };
    expect(await ask(uploadHandlers(desk)[handler], { id, owner: 'bob' })).toMatchObject(unknown);
    expect(await ask(uploadHandlers(desk).get, { id })).toMatchObject({ status: 200, body: { status: 'granted' } });
    expect((await ask(uploadHandlers(desk)[handler], { id, owner: 'alice' })).status).not.toBe(404);
  });

  it('does not know an upload without a subject', async () => {
    const { upload } = await quiet.granted();
    expect((await ask(uploadHandlers(desk).get, { id: upload.id, owner: 'bob' })).status).toBe(404);
  });

  it('does not know the project of another', async () => {
    expect(await createProject(desk, project('alice'))).toMatchObject({ ok: true });
    const of = { id: PROJECT, params: { document: '0' } };
    for (const handler of ['get', 'openDocument', 'cancel'] as const) {
      expect((await ask(projectHandlers(desk)[handler], { ...of, owner: 'bob' })).body).toEqual({
        error: { reason: 'project_unknown' },
      });
    }
    expect((await ask(projectHandlers(desk).list, { owner: 'bob' })).body).toEqual({ projects: [] });
    expect((await ask(projectHandlers(desk).list, { owner: 'alice' })).body.projects).toMatchObject([{ id: PROJECT }]);
    expect((await ask(projectHandlers(desk).get, { ...of, owner: 'alice' })).status).toBe(200);
  });

  it('lists its own uploads, page by page, over a bounded number of rows each', async () => {
    desk.scanRows = 4;
    const own: string[] = [];
    for (const subject of ['bob', 'alice', 'alice', 'alice', 'alice', 'bob', 'alice', 'bob', 'bob', 'bob', 'alice']) {
      const { upload } = await quiet.granted({ subject });
      if (subject === 'bob') own.unshift(upload.id);
    }
    const pages: string[][] = [];
    for (let after: unknown; pages.length < 10; ) {
      const query = { limit: '2', ...(typeof after === 'string' && { after }) };
      const { body } = await ask(uploadHandlers(desk).list, { owner: 'bob', query });
      pages.push((body.uploads as { id: string }[]).map(({ id }) => id));
      after = body.next;
      if (after === undefined) break;
    }
    expect(pages.flat()).toEqual(own);
    expect(pages.some((page) => page.length === 0)).toBe(true);
    expect((await ask(uploadHandlers(desk).list, {})).body.uploads).toHaveLength(11);
  });
});

describe('C4 a token that does not name the zone', () => {
  it.each([
    ['reading', 'get'],
    ['reading the transcript', 'open'],
    ['running again', 'rerun'],
    ['deleting', 'cancel'],
  ] as const)('does not know an upload of another zone of the app: %s', async (_, handler) => {
    const { id } = (await quiet.granted({ zone: 'us' })).upload;
    const unknown = { status: 404, body: { error: { reason: 'upload_unknown' } } };
    expect(await ask(uploadHandlers(desk)[handler], { id, zones: ['eu'] })).toMatchObject(unknown);
    expect(await ask(uploadHandlers(desk).get, { id })).toMatchObject({ status: 200, body: { status: 'granted' } });
    expect((await ask(uploadHandlers(desk)[handler], { id, zones: ['eu', 'us'] })).status).not.toBe(404);
    expect((await ask(uploadHandlers(desk).get, { id, zones: [1] })).status).toBe(401);
  });

  it('does not know a project of another zone of the app', async () => {
    expect(await createProject(desk, project('alice'))).toMatchObject({ ok: true });
    const of = { id: PROJECT, params: { document: '0' } };
    const unknown = { error: { reason: 'project_unknown' } };
    for (const handler of ['get', 'openDocument', 'cancel'] as const) {
      expect((await ask(projectHandlers(desk)[handler], { ...of, zones: ['us'] })).body).toEqual(unknown);
    }
    expect((await ask(projectHandlers(desk).list, { zones: ['us'] })).body).toEqual({ projects: [] });
    expect((await ask(projectHandlers(desk).list, { zones: ['eu'] })).body.projects).toMatchObject([{ id: PROJECT }]);
    expect((await ask(projectHandlers(desk).get, { ...of, zones: ['eu'] })).status).toBe(200);
  });

  it('lists the uploads of its zones, page by page', async () => {
    const own: string[] = [];
    for (const zone of ['us', 'eu', 'us', 'eu', 'eu']) {
      const { upload } = await quiet.granted({ zone });
      if (zone === 'us') own.unshift(upload.id);
    }
    const { body } = await ask(uploadHandlers(desk).list, { zones: ['us'], query: { limit: '1' } });
    expect(body).toMatchObject({ uploads: [{ id: own[0] }], next: own[0] });
    const rest = (await ask(uploadHandlers(desk).list, { zones: ['us'], query: { limit: '1', after: own[0] ?? '' } }))
      .body;
    expect(rest).toMatchObject({ uploads: [{ id: own[1] }] });
    expect((await ask(uploadHandlers(desk).list, { zones: ['eu', 'us'] })).body.uploads).toHaveLength(5);
  });
});
