// HTTP requests of the edge about exports: `shared/audit/bundle/contract.ts`.
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import { type ExportStatus, newExport } from '../../../shared/audit/bundle/contract.ts';
import { MANIFEST, MANIFEST_NOTE } from '../../../shared/audit/bundle/manifest.ts';
import { digestOf } from '../../../shared/audit/verify/bundle-files.ts';
import { isPath, readManifest } from '../../../shared/audit/verify/read-manifest.ts';
import { refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import type { EdgeCaller } from '../../caller/edge-caller.ts';
import { type EdgeHandler, fromEdge } from '../../caller/from-edge.ts';
import { answer, answerNo } from '../../http/answer.ts';
import { readJson } from '../../http/read-json.ts';
import { createExport } from './create-export.ts';
import type { ExportContext } from './export-context.ts';
import { readFile } from './export-files.ts';
import { type ExportRow, findExport, listExports, statusOf } from './export-row.ts';

/** Readers of exports whose last read one process remembers; beyond it all of them are recorded once more. */
const EXPORT_READERS_MAX = 1_000;
/** Interval in which fetches of one export are one entry of the record: its files are fetched one by one. */
const EXPORT_READ_MS = 600_000;

type ExportHandler = (
  request: HttpRequest,
  caller: EdgeCaller,
  context: ExportContext,
  zone: string,
) => Promise<HttpResponseInit>;

/** POST /api/audit/exports/{zone} */
export const onCreate = (context: ExportContext | undefined): EdgeHandler =>
  forExports(context, async (request, caller, found, zone) => {
    const body = newExport.safeParse(await readJson(request));
    if (!body.success || body.data.tenant !== caller.tenant)
      return answerNo(refuse('field_invalid', { field: 'body', rule: 'it is not as agreed' }));
    const made = await createExport(found, zone, body.data, caller.subject);
    return made.ok ? answer(202, statusOf(made.value)) : answerNo(made.refusal);
  });

/** GET /api/audit/exports/{zone}/{tenant} */
export const onList = (context: ExportContext | undefined): EdgeHandler =>
  forExports(context, async (_request, caller, { rows, reads }, zone) => {
    const reported = await reads.note({ zone, ...readerOf(caller), action: 'exports' });
    if (!reported.ok) return answerNo(reported.refusal);
    const found = await listExports(rows, zone, caller.tenant);
    return answer(200, { data: found.map((row) => statusOf(row)) });
  });

/** GET /api/audit/exports/{zone}/{tenant}/{id} */
export const onSee = (context: ExportContext | undefined): EdgeHandler =>
  forExports(context, async (request, caller, found, zone) => {
    const reported = await found.reads.note({ zone, ...readerOf(caller), action: 'export' });
    if (!reported.ok) return answerNo(reported.refusal);
    const row = await findOne(found, request, caller, zone);
    return row.ok ? answer(200, statusOf(row.value, await filesOf(found, row.value))) : answerNo(row.refusal);
  });

/** GET /api/audit/exports/{zone}/{tenant}/{id}/files/{path} */
export const onFile = (context: ExportContext | undefined): EdgeHandler =>
  forExports(context, async (request, caller, found, zone) => {
    const row = await findOne(found, request, caller, zone);
    if (!row.ok) return answerNo(row.refusal);
    const { path = '' } = request.params;
    const bytes = row.value.state === 'done' && isPath(path) ? await readFile(found.store, row.value, path) : undefined;
    if (!bytes) return answerNo(refuse('export_unknown'));
    const reported = await reportRead(found, row.value, caller, request.headers.get('x-request-id') ?? undefined);
    if (!reported.ok) return answerNo(reported.refusal);
    const headers = { 'content-type': 'application/octet-stream', 'cache-control': 'no-store' };
    return { status: 200, body: bytes as Uint8Array<ArrayBuffer>, headers };
  });

const readerOf = ({ tenant, subject }: EdgeCaller) => ({ tenant, subject });

async function findOne(
  { rows }: ExportContext,
  { params }: HttpRequest,
  { tenant }: EdgeCaller,
  zone: string,
): Promise<Result<ExportRow>> {
  const { id = '' } = params;
  const stored = /^[a-z0-9_.-]{1,120}$/.test(id) ? await findExport(rows, zone, tenant, id) : undefined;
  return stored ? ok(stored.row) : no(refuse('export_unknown'));
}

/** All files of an export that is done. */
async function filesOf({ store }: ExportContext, row: ExportRow): Promise<ExportStatus['files']> {
  if (row.state !== 'done') return undefined;
  const [bytes, note] = [await readFile(store, row, MANIFEST), await readFile(store, row, MANIFEST_NOTE)];
  const manifest = bytes && readManifest(bytes);
  if (!bytes || !note || !manifest || 'wrong' in manifest) throw new Error(`the manifest of ${row.id} is gone`);
  const digest = async (path: string, of: Uint8Array) => ({ path, bytes: of.length, sha256: await digestOf(of) });
  return [...manifest.files, await digest(MANIFEST, bytes), await digest(MANIFEST_NOTE, note)];
}

/** Time of the last report for each reader and export, in this process. */
const reads = new WeakMap<ExportContext, Map<string, number>>();

/** Reports a download before its first byte. */
async function reportRead(
  context: ExportContext,
  { zone, tenant, id }: ExportRow,
  { subject }: EdgeCaller,
  request?: string,
): Promise<Result<unknown>> {
  const known = reads.get(context) ?? new Map<string, number>();
  reads.set(context, known);
  const now = context.now();
  const reader = JSON.stringify([id, subject]);
  if (now - (known.get(reader) ?? Number.NEGATIVE_INFINITY) < EXPORT_READ_MS) return ok(undefined);
  const about = {
    tenant,
    export: id,
    action: 'files',
    ...(request !== undefined && { request }),
    ...(subject !== undefined && { subject }),
  };
  const reported = await context.report(zone, { type: 'export.read', ...about });
  if (!reported.ok) return reported;
  if (known.size >= EXPORT_READERS_MAX) known.clear();
  known.set(reader, now);
  return reported;
}

/** About the tenant of the question only, in a zone that is served. */
export const forExports = (context: ExportContext | undefined, then: ExportHandler): EdgeHandler =>
  fromEdge(
    context ? ok(context) : no(refuse('audit_closed', undefined, 'no exports')),
    async (request, caller, found) => {
      const { zone = '', tenant = caller.tenant } = request.params;
      if (!found.zones.includes(zone)) return answerNo(refuse('zone_unserved', { zone }));
      if (tenant !== caller.tenant) return answerNo(refuse('export_unknown'));
      return then(request, caller, found, zone);
    },
  );
