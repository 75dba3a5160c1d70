// The functions of a zone as the edge sees them when it asks about text projects, and the storage beside them.

import { type DocumentRow, newProject, newSegment, type ProjectRow } from '../../shared/jobs/project-contract.ts';
import { documentId } from '../../shared/jobs/project-id.ts';
import type { Reason } from '../../shared/refusal.ts';
import { readHead } from '../../shared/seal/envelope.ts';
import { openSmall } from '../../shared/seal/envelope-stream.ts';
import { generateZoneKey, importZoneKey } from '../../shared/seal/zone-key.ts';
import { elsewhere } from './network.ts';

export interface Line {
  readonly line: string;
  readonly body: unknown;
}

const CREATED = 1_700_000_000_000;

const documentOf = (project: string, index: number, title: string | undefined): DocumentRow => ({
  id: documentId(project, index),
  index,
  ...(title !== undefined && { title }),
  status: 'granted',
  edition: 0,
  segments: 0,
  segmentsDone: 0,
  blocks: [],
  audio: 'none',
});

export async function openProjectOffice(zone: 'eu' | 'us') {
  const { zoneKey, privateJwk } = await generateZoneKey();
  const key = await importZoneKey(privateJwk);
  const requests: Line[] = [];
  const rows = new Map<string, ProjectRow>();
  const files = new Map<string, Uint8Array>();
  const office = {
    zoneKey,
    requests,
    rows,
    /** Plaintext of a sealed file. */
    async open(bytes: Uint8Array): Promise<{ name: string; upload: string; text: string }> {
      const head = readHead(bytes);
      if (!head.ok) throw new Error('no head');
      const { tenant, upload, name } = head.value.head;
      const body = new Blob([new Uint8Array(bytes)]).stream();
      const opened = await openSmall(body, { expected: { tenant, upload, name }, known: () => key }, 1e6);
      if (!opened.ok) throw new Error(opened.refusal.detail);
      return { name, upload, text: new TextDecoder().decode(opened.value) };
    },
    files,
    storageFails: false,
    /** Says this, as often as it is here, instead of an answer. */
    refusals: [] as Reason[],
    row(change: Partial<ProjectRow> & Pick<ProjectRow, 'id'>): ProjectRow {
      const row: ProjectRow = {
        tenant: 'acme',
        status: 'working',
        run: 1,
        seq: 4,
        zone,
        class: 'batch',
        model: 'voice-en',
        project: { gaps: { segment: 250, block: 700 }, light: false, documents: [{ contentType: 'text/plain' }] },
        created: CREATED,
        updated: CREATED,
        notice: 'none',
        documents: [documentOf(change.id, 0, undefined)],
        zoneKey,
        ...change,
      };
      rows.set(row.id, row);
      return row;
    },
  };

  function make(body: unknown): Response {
    const { id, tenant, model, project } = newProject.parse(body);
    const documents = project.documents.map(({ title }, index) => documentOf(id, index, title));
    const row = office.row({ id, tenant, model, project, documents });
    const grants = documents.map((one) => ({
      id: one.id,
      url: `https://storage-${zone}.test/uploads/${tenant}/${one.id}?sig=secret`,
      headers: { 'x-ms-blob-type': 'BlockBlob' },
      expires: CREATED,
      maxBytes: 9_999,
    }));
    return Response.json({ project: row, documents: grants, zoneKey }, { status: 201 });
  }

  elsewhere.set(`storage-${zone}.test`, async (request) => {
    if (office.storageFails) return new Response('', { status: 403 });
    const { pathname, searchParams } = new URL(request.url);
    if (searchParams.get('comp') !== 'blocklist') files.set(pathname, new Uint8Array(await request.arrayBuffer()));
    return new Response('', { status: 201 });
  });
  elsewhere.set(`functions-${zone}.test`, async (request) => {
    const { pathname, search } = new URL(request.url);
    const body = ['POST', 'PUT'].includes(request.method) ? await request.json().catch(() => undefined) : undefined;
    requests.push({ line: `${request.method} ${pathname}${search}`, body });
    const [, tenant, id = '', ...below] = pathname.replace('/api/projects', '').split('/');
    if (!tenant) return make(body);
    const row = rows.get(id);
    if (id === '') return Response.json({ projects: [...rows.values()].sort((a, b) => (a.id < b.id ? 1 : -1)) });
    if (!row || row.tenant !== tenant) return Response.json({ error: { reason: 'project_unknown' } }, { status: 404 });
    const refusal = request.method === 'GET' ? undefined : office.refusals.shift();
    if (refusal) return Response.json({ error: { reason: refusal, params: { edition: 9 } } }, { status: 409 });
    if (below.includes('segments')) newSegment.parse(body);
    if (below.includes('open')) {
      const read = { url: `https://storage-${zone}.test/outcomes/x?sig=secret`, etag: '"1"' };
      const [document] = row.documents;
      const about = { document, model: row.model, run: 1, name: 'transcript-2', read, zone, zoneKeyId: zoneKey.kid };
      return Response.json({ ...about, expires: CREATED });
    }
    return Response.json(request.method === 'DELETE' ? office.row({ ...row, status: 'cancelled' }) : row);
  });
  return office;
}

export type ProjectOffice = Awaited<ReturnType<typeof openProjectOffice>>;
