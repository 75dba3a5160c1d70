import { eventId } from '../../shared/audit/event-id.ts';
import { limits } from '../../shared/limits.ts';
import { type ProjectGrant, projectGrant, projectRow } from '../../shared/project/contract.ts';
import { encodeDocument } from '../../shared/project/document.ts';
import { projectIdOf } from '../../shared/project/id.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { sealFile } from '../../shared/seal/envelope-stream.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { commitmentOfReader } from '../audit/reader.ts';
import type { RequestContext } from '../context.ts';
import { readJson } from '../json-body.ts';
import { refuseWith } from '../refuse.ts';
import { refusedWith, Session } from '../short/session.ts';
import { admit, recordDenial } from '../tenant/admit.ts';
import { askBackOffice } from '../upload/back-office.ts';
import { sendBlocks } from '../upload/send-blocks.ts';
import { type AskedProject, newProjectOf, readProjectBody } from './ask-project.ts';
import { placeProject } from './place-project.ts';
import { tellMade } from './tell-project.ts';

export const SCOPE = 'projects';
const ACTION = 'project';

/**
 * `POST /v1/projects`: text that is to be spoken. Text that comes with it is sealed here, document by document, before it
 * is stored; sealed documents are put by their owner where the answer says.
 */
export async function createProject(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, SCOPE, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const denied = (refusal: Refusal) => {
    recordDenial(claims.value, ACTION, refusal, context);
    return refuseWith(refusal);
  };
  const json = await readJson(request, context, limits.projectBodyBytes.value);
  const asked = json.ok ? readProjectBody(json.value, claims.value) : json;
  if (!asked.ok) return denied(asked.refusal);
  const site = await placeProject(asked.value.body, claims.value, context);
  if (!site.ok) return denied(site.refusal);
  const named = await commitmentOfReader(site.value.zone, claims.value, context);
  if (!named.ok) return denied(named.refusal);
  const { model, language } = asked.value.body;
  const session = await Session.begin(claims.value, { action: ACTION, model, language, class: 'batch' }, context);
  if (!session.ok) return denied(session.refusal);
  try {
    const made = await make(asked.value, claims.value, { ...site.value, commitment: named.value }, context);
    await session.value.end({ ...(made.ok ? { status: 201 } : refusedWith(made.refusal)), bytes: 0 });
    if (!made.ok) return refuseWith(made.refusal);
    const { origin } = new URL(request.url);
    const answer = tellMade(made.value, origin, asked.value.texts === undefined);
    const headers = { 'cache-control': 'no-store', location: answer.status_url };
    return Response.json(answer, { status: 201, headers });
  } catch (error) {
    await session.value.end({ ...refusedWith(refuse('internal')), bytes: 0 });
    throw error;
  }
}

async function make(
  asked: AskedProject,
  claims: Claims,
  site: { zone: string; light: boolean; commitment: string | undefined },
  context: RequestContext,
): Promise<Result<ProjectGrant>> {
  const { tenant } = claims;
  const { zone } = site;
  const id = projectIdOf(eventId(context.surroundings.now(), crypto.getRandomValues(new Uint8Array(10))));
  const body = newProjectOf(asked, claims, id, site);
  const question = { zone, method: 'POST', path: '/projects', body } as const;
  const granted = await askBackOffice(question, projectGrant, tenant, context);
  if (!granted.ok) return granted;
  if (!granted.value) return no(refuse('uploads_unavailable', undefined, 'no grant'));
  const sent = await sendTexts(asked, granted.value, tenant, context);
  if (sent.ok) return ok(granted.value);
  // A project without all of its text is nobody's.
  const path = `/projects/${tenant}/${id}`;
  context.waitUntil(askBackOffice({ zone, method: 'DELETE', path }, projectRow, tenant, context));
  return sent;
}

/** Each in its own sealed file; one is held at a time. */
async function sendTexts(
  { texts = [] }: AskedProject,
  { documents, zoneKey }: ProjectGrant,
  tenant: string,
  { surroundings }: RequestContext,
): Promise<Result<undefined>> {
  for (const [index, text] of texts.entries()) {
    const grant = documents[index];
    if (!grant) return no(refuse('uploads_unavailable', undefined, 'fewer grants than documents'));
    const plain = new Blob([encodeDocument(text)]).stream();
    const file = await sealFile({ tenant, upload: grant.id, name: 'upload' }, zoneKey, plain);
    const sent = await sendBlocks(file, grant, surroundings);
    if (!sent.ok) return sent;
  }
  return ok(undefined);
}
