// Searches the audit entries of the tenant.
import { z } from 'zod';
import { logYear } from '../../shared/audit/logged-years.ts';
import { SEARCH_HITS_MAX } from '../../shared/audit/privacy.ts';
import { foundEntries } from '../../shared/audit/search.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { admit } from '../auth/admit.ts';
import type { RequestContext } from '../context.ts';
import { refuseWith } from '../http/refuse.ts';
import { refuseField } from '../http/refuse-field.ts';
import { callAuditFunctionsFor } from './call-functions.ts';
import { commitmentsIn, requestActor, zonesOf } from './request-actor.ts';

/** Header with the subject of a search: URLs are logged in many places. */
const SUBJECT_HEADER = 'x-auricle-subject';

const digits = z
  .string()
  .regex(/^[0-9]{1,9}$/)
  .transform(Number);
const PLACES = new RegExp(`^[0-9]{1,15}(?:,[0-9]{1,15}){0,${SEARCH_HITS_MAX - 1}}$`);

/** The query of `GET /v1/audit/search`; `subject` comes in a header. */
export const searchQuery = z.strictObject({
  request: z.string().min(1).max(128).optional(),
  model: z.string().min(1).max(256).optional(),
  day: z.iso.date().optional(),
  type: z.string().min(1).max(64).optional(),
  ...requestActor,
  /** Positions in that year's log, separated by commas. */
  year: digits.pipe(logYear).optional(),
  index: z
    .string()
    .regex(PLACES)
    .transform((text) => text.split(',').map(Number))
    .optional(),
  disclose: z.enum(['true', 'false']).optional(),
  zone: z.string().optional(),
  after: z.string().max(64).optional(),
  limit: digits.pipe(z.number().int().min(1).max(SEARCH_HITS_MAX)).optional(),
});

export const listedHits = z.object({ object: z.literal('list'), data: z.array(foundEntries) });

const fresh = { 'cache-control': 'no-store' };

/** `GET /v1/audit/search`: by request, subject, model or day. Returns entries by zone. */
export async function searchAudit(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, 'audit', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const query = readQuery(request);
  if (!query.ok) return refuseWith(query.refusal);
  const { zone: requested, subject, commitment, day, index, disclose, ...rest } = query.value;
  if ((index === undefined) !== (rest.year === undefined))
    return refuseWith(refuse('field_invalid', { field: 'index', rule: 'goes with a year' }));
  const zones = zonesOf(claims.value, requested, context);
  if (!zones.ok) return refuseWith(zones.refusal);
  const data: z.infer<typeof foundEntries>[] = [];
  for (const zone of zones.value) {
    const subjects = await commitmentsIn(zone, { subject, commitment }, claims.value, context);
    if (!subjects.ok) return refuseWith(subjects.refusal);
    const body = {
      ...rest,
      ...(index !== undefined && { indexes: index }),
      ...(disclose === 'true' && { disclose: true }),
      ...(day !== undefined && { day: day.replaceAll('-', '') }),
      ...(subjects.value && { subjects: subjects.value }),
    };
    const found = await callAuditFunctionsFor(
      { zone, path: `/${zone}/search`, body },
      foundEntries,
      claims.value,
      context,
    );
    if (!found.ok) return refuseWith(found.refusal);
    data.push(found.value);
  }
  return Response.json({ object: 'list', data }, { headers: fresh });
}

function readQuery(request: Request): Result<z.infer<typeof searchQuery>> {
  const given = Object.fromEntries(new URL(request.url).searchParams);
  const subject = request.headers.get(SUBJECT_HEADER);
  const decoded = subject === null ? undefined : decode(subject);
  if (subject !== null && decoded === undefined)
    return no(refuse('field_invalid', { field: SUBJECT_HEADER, rule: 'must be percent-encoded UTF-8' }));
  const json = { ...given, ...(decoded !== undefined && { subject: decoded }) };
  const parsed = searchQuery.safeParse(json);
  return parsed.success ? ok(parsed.data) : no(refuseField(parsed.error, json));
}

/** Decodes a subject: names may be non-ASCII, headers are ASCII. */
function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
