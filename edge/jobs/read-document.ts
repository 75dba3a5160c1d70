import type { DocumentHead } from '../../shared/jobs/document-head.ts';
import { openedDocument } from '../../shared/jobs/project-contract.ts';
import { type BodyPiece, type CallEvent, readCallRecord } from '../../shared/kserve/call.ts';
import { ok } from '../../shared/result.ts';
import type { PathParams, RequestContext } from '../context.ts';
import { CallerBody } from '../http/caller-body.ts';
import { refuseWith } from '../http/refuse.ts';
import { answerCall } from '../protocol/kserve/render-answer.ts';
import { Relay } from '../routing/relay.ts';
import { PROJECTS } from './kinds.ts';
import { admitReader, modelInZone, openResult } from './open-result.ts';
import { readPlace } from './read-place.ts';

/** `GET …/documents/{d}/audio` */
export const readAudio = (request: Request, context: RequestContext, params: PathParams) =>
  readPart(request, context, params, 'audio');

/** `GET …/documents/{d}/manifest` */
export const readManifest = (request: Request, context: RequestContext, params: PathParams) =>
  readPart(request, context, params, 'manifest');

/**
 * Answers with one part of a document. The document lies sealed in storage; an agent of its zone opens it, and its
 * plaintext passes that agent and the edge only.
 */
async function readPart(
  request: Request,
  context: RequestContext,
  params: PathParams,
  part: DocumentHead['part'],
): Promise<Response> {
  const action = `project.${part}`;
  const claims = await admitReader(request, PROJECTS, action, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const place = readPlace(params);
  const below = place.ok ? ok(`/documents/${place.value.document}/open`) : place;
  const address = { kind: PROJECTS, action, id: params.name, below, schema: openedDocument };
  const result = await openResult(address, claims.value, context);
  if (!result.ok) return refuseWith(result.refusal);
  const { opened, session } = result.value;
  const { document, run, name, read, zone, model, language } = opened;
  session.learn({ model, language });
  const head: DocumentHead = { v: 1, task: 'document', document: document.id, run, name, part, read };
  const hints = { model: await modelInZone(zone, model, context), language: undefined };
  const agentRequest = { task: 'infer', hints, head, zones: [zone], read: readCallRecord } as const;
  const body = new CallerBody(null, context.runtime);
  const relay = new Relay<CallEvent | BodyPiece>(session, body, agentRequest, context);
  relay.watch(request.signal);
  return answerCall(relay, refuseWith);
}
