import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { admit, recordDenial } from '../auth/admit.ts';
import type { RequestContext } from '../context.ts';
import { readJson } from '../http/json-body.ts';
import { refuseWith } from '../http/refuse.ts';
import { modelUuid } from '../protocol/deepgram-model.ts';
import { refuseAsDeepgram } from '../protocol/deepgram-refuse.ts';
import { answerSpeech, type SpeechRendering } from '../protocol/speech-answer.ts';
import { readSpeakBody, readSpeakQuery, readSpeechBody, type SpeechOptions } from '../protocol/speech-request.ts';
import { readModelNames, resolveModel } from '../routing/model-names.ts';
import { openSpeech, SPEAK } from './speech-relay.ts';

/** Serves `POST /v1/audio/speech`. */
export async function createSpeech(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, SPEAK, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const json = await readUnsealed(request, claims.value, context);
  const read = json.ok ? readSpeechBody(json.value) : json;
  if (!read.ok) return refuseWith(recordDenial(claims.value, SPEAK, read.refusal, context));
  const { text, options, framed } = read.value;
  const headers = () => ({ 'x-sample-rate': String(options.sampleRate), 'x-channels': '1' });
  return serve({ request, claims: claims.value, options, text }, { framed, refuse: refuseWith, headers }, context);
}

/** Serves `POST /v1/speak`. */
export async function createDeepgramSpeech(request: Request, context: RequestContext): Promise<Response> {
  const refuseHere = (refusal: Refusal) => refuseAsDeepgram(refusal, context.id);
  const claims = await admit(request, SPEAK, context);
  if (!claims.ok) return refuseHere(claims.refusal);
  const denied = (refusal: Refusal) => refuseHere(recordDenial(claims.value, SPEAK, refusal, context));
  const query = readSpeakQuery(new URL(request.url).searchParams, false);
  if (!query.ok) return denied(query.refusal);
  const json = await readUnsealed(request, claims.value, context);
  const text = json.ok ? readSpeakBody(json.value) : json;
  if (!text.ok) return denied(text.refusal);
  const headers: SpeechRendering['headers'] = ({ revision }) => ({
    'dg-request-id': context.id,
    'dg-model-name': context.model ?? '',
    'dg-model-uuid': modelUuid(context.model ?? '', revision),
    'dg-char-count': String(text.value.length),
  });
  const work = { request, claims: claims.value, options: query.value, text: text.value };
  return serve(work, { refuse: refuseHere, headers }, context);
}

async function readUnsealed(
  request: Request,
  { sealing }: Claims,
  context: RequestContext,
): Promise<Result<Readonly<Record<string, unknown>>>> {
  return sealing === 'client' ? no(refuse('sealing_required')) : readJson(request, context);
}

interface Requested {
  readonly request: Request;
  readonly claims: Claims;
  readonly options: SpeechOptions;
  readonly text: string;
}

async function serve(
  { request, claims, options, text }: Requested,
  rendering: SpeechRendering,
  context: RequestContext,
): Promise<Response> {
  const model = resolveModel(options.model, await readModelNames(claims, context), context);
  if (!model.ok) return rendering.refuse(recordDenial(claims, SPEAK, model.refusal, context));
  const requested = request.headers.get('x-auricle-class') ?? undefined;
  const work = { claims, class: requested, model: model.value, options, text };
  const opened = await openSpeech(work, context);
  if (!opened.ok) return rendering.refuse(opened.refusal);
  opened.value.watch(request.signal);
  const answering = answerSpeech(opened.value, rendering);
  // A caller that goes away must not take the end of its request along.
  context.waitUntil(answering);
  return answering;
}
