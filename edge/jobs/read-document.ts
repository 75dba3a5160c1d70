import { type BodyPiece, type CallEvent, readCallRecord } from '../../shared/kserve/call.ts';
import { type OpenedDocument, openedDocument } from '../../shared/project/contract.ts';
import type { DocumentHead } from '../../shared/project/document-head.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { type Claims, clampClass } from '../../shared/tenant/claims.ts';
import { admit, recordDenial } from '../auth/admit.ts';
import type { PathParams, RequestContext } from '../context.ts';
import { CallerBody } from '../http/caller-body.ts';
import { refuseWith } from '../http/refuse.ts';
import { refusedWith, Session } from '../ledger/session.ts';
import { answerCall } from '../protocol/kserve/render-answer.ts';
import { Relay } from '../routing/relay.ts';
import { readSnapshots } from '../routing/snapshot.ts';
import { callJob } from './find-job.ts';
import { PROJECTS } from './kinds.ts';
import { readPlace } from './read-place.ts';

/** `GET …/documents/{d}/audio` */
export const readAudio = (request: Request, context: RequestContext, params: PathParams) =>
  readPart(request, context, params, 'audio');

/** `GET …/documents/{d}/manifest` */
export const readManifest = (request: Request, context: RequestContext, params: PathParams) =>
  readPart(request, context, params, 'manifest');

/**
 * Answers with one part of a document. The document lies sealed in storage; an agent of its zone opens it, and its
 * plaintext passes that agent and the edge only. A token that demands client sealing is refused.
 */
async function readPart(
  request: Request,
  context: RequestContext,
  params: PathParams,
  part: DocumentHead['part'],
): Promise<Response> {
  const claims = await admit(request, PROJECTS.scope, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const action = `project.${part}`;
  if (claims.value.sealing === 'client') {
    const refusal = refuse('sealing_required');
    recordDenial(claims.value, action, refusal, context);
    return refuseWith(refusal);
  }
  const requestClass = clampClass('interactive', claims.value.priority);
  const subject = { action, model: undefined, language: undefined, class: requestClass };
  const session = await Session.begin(claims.value, subject, context);
  if (!session.ok) {
    recordDenial(claims.value, action, session.refusal, context);
    return refuseWith(session.refusal);
  }
  let opened: Result<OpenedDocument>;
  try {
    opened = await open(params, claims.value, context);
  } catch (error) {
    await session.value.end({ ...refusedWith(refuse('internal')), bytes: 0 });
    throw error;
  }
  if (!opened.ok) {
    await session.value.end({ ...refusedWith(opened.refusal), bytes: 0 });
    return refuseWith(opened.refusal);
  }
  const relay = await ask(opened.value, part, session.value, context);
  relay.watch(request.signal);
  return answerCall(relay, refuseWith);
}

async function open(params: PathParams, claims: Claims, context: RequestContext): Promise<Result<OpenedDocument>> {
  const place = readPlace(params);
  if (!place.ok) return place;
  const below = `/documents/${place.value.document}/open`;
  const found = await callJob(
    { kind: PROJECTS, id: params.name, method: 'POST', below },
    openedDocument,
    claims,
    context,
  );
  if (!found.ok) return found;
  const { value } = found.value;
  if (!value) return no(refuse('uploads_unavailable', undefined, 'an empty answer'));
  // A document is opened in its own zone only.
  return claims.zones.includes(value.zone) ? ok(value) : no(refuse('residency_mismatch'));
}

/** Calls an agent of the document's zone. Every agent of the zone holds the key, whatever models it serves. */
async function ask(opened: OpenedDocument, part: DocumentHead['part'], session: Session, context: RequestContext) {
  const { document, run, name, read, zone, model, language } = opened;
  const { settings, env, runtime } = context;
  session.learn({ model, language });
  const snapshots = await readSnapshots(settings.zones, env.ROSTER, runtime);
  const served = snapshots.filter((one) => one.zone === zone).flatMap((one) => one.entries);
  const names = served.flatMap(({ description }) => description.models.map((one) => one.name));
  // When no agent serves the voice any more, any other model selects an agent of the zone.
  const door = names.includes(model) ? model : (names[0] ?? model);
  const head: DocumentHead = { v: 1, task: 'document', document: document.id, run, name, part, read };
  const body = new CallerBody(null, runtime);
  const hints = { model: door, language: undefined };
  const agentRequest = { task: 'infer', hints, head, zones: [zone], read: readCallRecord } as const;
  return new Relay<CallEvent | BodyPiece>(session, body, agentRequest, context);
}
