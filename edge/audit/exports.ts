// Exports of the audit log: a tenant's entries in a bundle that can be verified without us.
import { z } from 'zod';
import {
  EXPORT_PURPOSE_CHARACTERS,
  exportQuery,
  exportStatus,
  type NewExport,
  newExport,
  redactionProfile,
} from '../../shared/audit/bundle/contract.ts';
import { formatNames } from '../../shared/audit/derived/formats.ts';
import { plainText } from '../../shared/audit/plain-text.ts';
import { isPath } from '../../shared/audit/verify/read-manifest.ts';
import { zoneName } from '../../shared/names.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { admit } from '../auth/admit.ts';
import type { PathParams, RequestContext } from '../context.ts';
import { readJson } from '../http/json-body.ts';
import { refuseWith } from '../http/refuse.ts';
import { refuseField } from '../http/refuse-field.ts';
import { callAuditFunctions, callAuditFunctionsFor } from './call-functions.ts';

const time = z.iso.datetime({ offset: true }).or(z.iso.date());

/** Body of `POST /v1/audit/exports`. */
export const exportBody = z.strictObject({
  purpose: plainText(EXPORT_PURPOSE_CHARACTERS).describe('Purpose; it is recorded'),
  zone: zoneName.optional().describe('Zone of the log; default: the home zone of the token'),
  year: exportQuery.shape.year.describe('Year of the log, also one that has ended; default: the newest'),
  from: time.optional().describe('First time, within the year of the log; all later entries are in the bundle'),
  to: time
    .optional()
    .describe('End of disclosures and derived files; entries continue to the export itself or the end of the year'),
  tseq_from: exportQuery.shape.tseq_from.describe('The same range by `tseq`, the number of the tenant'),
  tseq_to: exportQuery.shape.tseq_to,
  formats: z
    .array(z.enum(formatNames))
    .max(formatNames.length)
    .default([...formatNames])
    .describe('Derived files'),
  redaction: redactionProfile
    .default('full')
    .describe('`full`, `auditor-min` (commitments only), or `fields:` and the names of members to disclose'),
  known_size: newExport.shape.known_size.describe(
    'Size of a checkpoint you have: the bundle shows that the log grew from it',
  ),
});

export const listedExports = z.object({ object: z.literal('list'), data: z.array(exportStatus) });

const fresh = { 'cache-control': 'no-store' };

/** `POST /v1/audit/exports` */
export async function createExport(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, 'audit', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const json = await readJson(request, context);
  const body = json.ok ? exportBody.safeParse(json.value) : undefined;
  if (!json.ok) return refuseWith(json.refusal);
  if (!body?.success) return refuseWith(body ? refuseField(body.error, json.value) : refuse('json_invalid'));
  const zone = zoneOf(claims.value, body.data.zone, context);
  if (!zone.ok) return refuseWith(zone.refusal);
  const requested = newExportOf(body.data, claims.value, context);
  const question = { zone: zone.value, path: `/exports/${zone.value}`, body: requested };
  const made = await callAuditFunctionsFor(question, exportStatus, claims.value, context);
  if (!made.ok) return refuseWith(made.refusal);
  const location = `/v1/audit/exports/${made.value.id}`;
  return Response.json(made.value, { status: 202, headers: { ...fresh, location } });
}

function newExportOf(body: z.infer<typeof exportBody>, { tenant }: Claims, { id }: RequestContext): NewExport {
  const { year, from, to, tseq_from, tseq_to, purpose, formats, redaction, known_size } = body;
  const query = {
    ...(year !== undefined && { year }),
    ...(from !== undefined && { from: Date.parse(from) }),
    ...(to !== undefined && { to: Date.parse(to) }),
    ...(tseq_from !== undefined && { tseq_from }),
    ...(tseq_to !== undefined && { tseq_to }),
  };
  const known = known_size === undefined ? {} : { known_size };
  return { tenant, request: id, purpose, formats, redaction, query, ...known };
}

/**
 * Reports whether a token may see a zone. A token that names zones sees no others: regional data stays with
 * regional callers.
 */
export const isOpenTo = ({ zones }: Pick<Claims, 'zones'>, zone: string): boolean =>
  zones.length === 0 || zones.includes(zone);

/** Returns the requested zone if the token permits it; by default its home. */
export function zoneOf(
  { zones }: Pick<Claims, 'zones'>,
  requested: string | undefined,
  { settings }: RequestContext,
): Result<string> {
  const served = [...settings.auditLogs.keys()].filter((zone) => isOpenTo({ zones }, zone));
  const zone = requested ?? zones.find((one) => served.includes(one)) ?? served[0];
  if (zone === undefined) return no(refuse('audit_closed'));
  return served.includes(zone) ? ok(zone) : no(refuse('zone_unserved', { zone }));
}

/** `GET /v1/audit/exports?zone=…`, newest first. */
export async function listExports(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, 'audit', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const { tenant } = claims.value;
  const zone = zoneOf(claims.value, new URL(request.url).searchParams.get('zone') ?? undefined, context);
  if (!zone.ok) return refuseWith(zone.refusal);
  const schema = listedExports.pick({ data: true });
  const question = { zone: zone.value, path: `/exports/${zone.value}/${tenant}` };
  const found = await callAuditFunctionsFor(question, schema, claims.value, context);
  return found.ok
    ? Response.json({ object: 'list', data: found.value.data }, { headers: fresh })
    : refuseWith(found.refusal);
}

const UUID_CHARACTERS = 36;

/** Returns the zone that begins an export id. */
const zoneIn = (id: string): string => id.slice(0, -UUID_CHARACTERS - 1);
const NAME = /^([a-z0-9][a-z0-9_.-]*-[0-9a-f-]{36})(?:\/files\/(.+))?$/;

/** `GET /v1/audit/exports/{id}`, and `…/files/{path}` */
export async function readExport(request: Request, context: RequestContext, { name }: PathParams): Promise<Response> {
  const claims = await admit(request, 'audit', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const [, id, path] = NAME.exec(name) ?? [];
  // A path outside a bundle would be another address of the functions.
  if (id === undefined || (path !== undefined && !isPath(path))) return refuseWith(refuse('export_unknown'));
  const zone = zoneOf(claims.value, zoneIn(id), context);
  if (!zone.ok) return refuseWith(refuse('export_unknown'));
  const root = `/exports/${zone.value}/${claims.value.tenant}/${id}`;
  if (path === undefined) {
    const found = await callAuditFunctionsFor({ zone: zone.value, path: root }, exportStatus, claims.value, context);
    return found.ok ? Response.json(found.value, { headers: fresh }) : refuseWith(found.refusal);
  }
  const file = await callAuditFunctions({ zone: zone.value, path: `${root}/files/${path}` }, claims.value, context);
  if (!file.ok) return refuseWith(file.refusal);
  const headers = { ...fresh, 'content-type': 'application/octet-stream', 'x-content-type-options': 'nosniff' };
  return new Response(file.value.body, { headers });
}
