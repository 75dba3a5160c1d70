import { readSegment } from '../../shared/jobs/document.ts';
import { PROJECT_EDIT_TRIES_MAX } from '../../shared/jobs/limits.ts';
import { inEdition } from '../../shared/jobs/paths.ts';
import { type NewSegment, type ProjectRow, projectRow } from '../../shared/jobs/project-contract.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { sealSmall } from '../../shared/seal/envelope-stream.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import type { PathParams, RequestContext } from '../context.ts';
import { readJson } from '../http/json-body.ts';
import { refuseField } from '../http/refuse-field.ts';
import { callJob, type FoundJob } from './find-job.ts';
import { inSession } from './in-session.ts';
import { answerJob } from './job-routes.ts';
import { PROJECTS } from './kinds.ts';
import { mayBePlain, segmentBody } from './project-body.ts';
import { readPlace, type SegmentPlace } from './read-place.ts';

/** Number of the run that makes a document; edits stay in it. */
const RUN = 1;

/**
 * `PUT /v1/projects/{id}/documents/{d}/segments/{s}`: another text for one segment. Agents synthesise that
 * segment again and assemble its document again.
 */
export async function editSegment(request: Request, context: RequestContext, params: PathParams): Promise<Response> {
  const { name: id } = params;
  const work = async (claims: Claims) => {
    const place = readPlace(params);
    const json = await readJson(request, context);
    if (!json.ok) return json;
    const body = segmentBody.safeParse(json.value);
    if (!body.success) return no(refuseField(body.error, json.value));
    if (!place.ok) return place;
    const address = { id, ...place.value };
    if ('sealed' in body.data) {
      const { edition, sealed } = body.data;
      return put(address, { edition, file: sealed }, claims, context);
    }
    if (!mayBePlain(claims)) return no(refuse('sealing_required'));
    const text = readSegment(body.data.text);
    return text.ok ? sealAndPut(address, text.value, claims, context) : text;
  };
  const { scope } = PROJECTS;
  return answerJob(PROJECTS, await inSession(request, context, { scope, action: 'project.edit' }, work), 202);
}

/** A segment of a project. */
interface SegmentAddress extends SegmentPlace {
  /** Id of the project. */
  readonly id: string;
}

type Answered = Promise<Result<FoundJob<ProjectRow>>>;

/** Seals for the next edition, and retries with the one after it when a concurrent edit took that. */
async function sealAndPut(address: SegmentAddress, text: string, claims: Claims, context: RequestContext): Answered {
  let last: Awaited<Answered> = no(refuse('edition_passed', { edition: 0 }));
  for (let tries = 0; tries < PROJECT_EDIT_TRIES_MAX; tries += 1) {
    const sealed = await sealFor(address, text, claims, context);
    if (!sealed.ok) return sealed;
    last = await put(address, sealed.value, claims, context);
    if (last.ok || last.refusal.reason !== 'edition_passed') return last;
  }
  return last;
}

async function sealFor(
  { id, document, segment }: SegmentAddress,
  text: string,
  claims: Claims,
  context: RequestContext,
): Promise<Result<NewSegment>> {
  const found = await callJob({ kind: PROJECTS, id, method: 'GET' }, projectRow, claims, context);
  if (!found.ok) return found;
  const row = found.value.value;
  if (!row?.zoneKey) return no(refuse('uploads_unavailable', undefined, 'no key to seal to'));
  const about = row.documents.find(({ index }) => index === document);
  if (!about) return no(refuse('document_unknown'));
  const edition = about.edition + 1;
  const name = `${RUN}/${inEdition(`pieces/${segment}`, edition)}`;
  const facts = { tenant: claims.tenant, upload: about.id, name };
  const file = await sealSmall(facts, row.zoneKey, new TextEncoder().encode(text));
  return ok({ edition, file: Buffer.from(file).toString('base64') });
}

const put = (
  { id, document, segment }: SegmentAddress,
  body: NewSegment,
  claims: Claims,
  context: RequestContext,
): Answered => {
  const below = `/documents/${document}/segments/${segment}`;
  return callJob({ kind: PROJECTS, id, method: 'PUT', below, body }, projectRow, claims, context);
};
