import { eventId } from '../../shared/audit/event-id.ts';
import { encodeDocument } from '../../shared/jobs/document.ts';
import { type ProjectGrant, projectGrant, projectRow } from '../../shared/jobs/project-contract.ts';
import { projectIdOf } from '../../shared/jobs/project-id.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { sealFile } from '../../shared/seal/envelope-stream.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { admit, recordDenial } from '../auth/admit.ts';
import type { RequestContext } from '../context.ts';
import { callFunctionsRoute, openOutcome } from '../functions/call-functions.ts';
import { readJson } from '../http/json-body.ts';
import { refuseWith } from '../http/refuse.ts';
import { commitmentOfReader } from '../ledger/commitment.ts';
import { gateName } from '../ledger/record.ts';
import { Session } from '../ledger/session.ts';
import { beginKeyedRequest, type KeyedRequest } from './keyed-request.ts';
import { placeProject } from './place-project.ts';
import { uploadZones } from './place-work.ts';
import { newProjectOf, PROJECT_BODY_BYTES, type RequestedProject, readProjectBody } from './project-body.ts';
import { renderCreatedProject } from './render-project.ts';
import { sendBlocks } from './send-blocks.ts';

const SCOPE = 'projects';
const ACTION = 'project';

/**
 * `POST /v1/projects`: text to be spoken. Text in the body is sealed here, document by document, before it is
 * stored; sealed documents are uploaded by their owner to the addresses in the answer.
 */
export async function createProject(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, SCOPE, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const denied = (refusal: Refusal) => refuseWith(recordDenial(claims.value, ACTION, refusal, context));
  const json = await readJson(request, context, PROJECT_BODY_BYTES);
  const requested = json.ok ? readProjectBody(json.value, claims.value) : json;
  if (!requested.ok) return denied(requested.refusal);
  const { body } = requested.value;
  const site = await placeProject(body, claims.value, context);
  const zone = site.ok ? ok(site.value.zone) : site;
  const newId = () => projectIdOf(eventId(context.runtime.now(), crypto.getRandomValues(new Uint8Array(10))));
  const keyed = { headers: request.headers, request: [ACTION, body], newId, zone };
  const run = await beginKeyedRequest(keyed, claims.value, context);
  if (!run.ok) return denied(run.refusal);
  const light = site.ok && site.value.light;
  const served = site.ok ? { ...requested.value, body: { ...body, model: site.value.model } } : requested.value;
  const made = await makeRun(served, claims.value, { run: run.value, light }, context);
  await run.value.end(made.ok ? undefined : made.refusal);
  if (!made.ok) return refuseWith(made.refusal);
  const { origin } = new URL(request.url);
  const answer = renderCreatedProject(made.value, origin, requested.value.texts === undefined);
  const headers = { 'cache-control': 'no-store', location: answer.status_url };
  return Response.json(answer, { status: 201, headers });
}

interface Site {
  readonly run: KeyedRequest;
  readonly light: boolean;
}

/** Leases a slot, records the attempt and makes the project. Refusals are recorded. */
async function makeRun(
  requested: RequestedProject,
  claims: Claims,
  site: Site,
  context: RequestContext,
): Promise<Result<ProjectGrant>> {
  const denied = (refusal: Refusal) => no(recordDenial(claims, ACTION, refusal, context));
  const { zone } = site.run;
  // A token of the same subject may name other zones than that of the first request.
  if (!uploadZones(claims, context).includes(zone)) return denied(refuse('residency_mismatch'));
  const named = await commitmentOfReader(zone, claims, context);
  if (!named.ok) return denied(named.refusal);
  const { model, language } = requested.body;
  const session = await Session.begin(claims, { action: ACTION, model, language, class: 'batch' }, context);
  if (!session.ok) return session;
  const work = () => make(requested, claims, { ...site, commitment: named.value }, context);
  const made = await session.value.guard(work);
  if (made.ok) await session.value.end({ status: 201, bytes: 0 });
  return made;
}

async function make(
  requested: RequestedProject,
  claims: Claims,
  { run, light, commitment }: Site & { readonly commitment: string | undefined },
  context: RequestContext,
): Promise<Result<ProjectGrant>> {
  const { tenant } = claims;
  const { id, zone, fingerprint } = run;
  const keyed = fingerprint !== undefined && { fingerprint };
  // Usage is reported later to the gate that admits this request.
  const home = gateName(claims, context.settings.zones).slice(tenant.length + 1);
  const body = { ...newProjectOf(requested, claims, id, { zone, home, light, commitment }), ...keyed };
  const question = { zone, method: 'POST', path: '/projects', body, makes: id } as const;
  const granted = await callFunctionsRoute(question, projectGrant, tenant, context);
  if (!granted.ok) return granted;
  if (!granted.value) return no(refuse('uploads_unavailable', undefined, 'no grant'));
  const sent = run.done ? ok(undefined) : await sendTexts(requested, granted.value, { tenant, run }, context);
  if (sent.ok) return ok(granted.value);
  // Storage that did not confirm a text may have it. The next request with the key sends all of them again; without a
  // key the project is deleted.
  const path = `/projects/${tenant}/${id}`;
  if (!keyed) context.waitUntil(callFunctionsRoute({ zone, method: 'DELETE', path }, projectRow, tenant, context));
  return no({ ...sent.refusal, params: openOutcome(id) });
}

/** Sends each text in a sealed file of its own; one is buffered at a time. */
async function sendTexts(
  { texts = [] }: RequestedProject,
  { documents, zoneKey }: ProjectGrant,
  { tenant, run }: { readonly tenant: string; readonly run: KeyedRequest },
  { runtime }: RequestContext,
): Promise<Result<undefined>> {
  for (const [index, text] of texts.entries()) {
    run.renew();
    const grant = documents[index];
    if (!grant) return no(refuse('uploads_unavailable', undefined, 'fewer grants than documents'));
    const plain = new Blob([encodeDocument(text)]).stream();
    const file = await sealFile({ tenant, upload: grant.id, name: 'upload' }, zoneKey, plain);
    const sent = await sendBlocks(file, grant, runtime);
    if (!sent.ok) return sent;
  }
  return ok(undefined);
}
