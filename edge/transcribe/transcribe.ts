import { allowsLanguage, allowsSpoken, isOpen } from '../../shared/pool/language.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { DEFAULT_NAME } from '../../shared/registry/names.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { tagOfLanguage } from '../../shared/speech/language.ts';
import { BODY_BYTES, CONTENT_TYPE_CHARACTERS } from '../../shared/speech/limits.ts';
import type { AnswerEvent } from '../../shared/speech/transcript.ts';
import { type Claims, clampClass } from '../../shared/tenant/claims.ts';
import { admit, recordDenial } from '../auth/admit.ts';
import type { RequestContext } from '../context.ts';
import { readLength } from '../http/body-source.ts';
import { CallerBody } from '../http/caller-body.ts';
import { readBoundary } from '../http/multipart.ts';
import { refuseWith } from '../http/refuse.ts';
import { takeForm, wantsUpload } from '../jobs/take-form.ts';
import { CLIENT_GONE, refusedWith, Session } from '../ledger/session.ts';
import { checkPromise, type Hints, type RequestHints, readHints, readRequestHints } from '../protocol/hints.ts';
import { answerTranscription, type Source } from '../protocol/openai-audio.ts';
import { type ModelNames, readModelNames, resolveModel } from '../routing/model-names.ts';
import { type AgentRequest, Relay } from '../routing/relay.ts';
import { transcription } from './transcription.ts';

const ACTION = 'transcribe';

/** Serves `POST /v1/audio/transcriptions`. */
export async function transcribe(request: Request, context: RequestContext): Promise<Response> {
  const { headers } = request;
  if (wantsUpload(headers)) return takeForm(request, context);
  const admitted = await admit({ headers }, ACTION, context);
  if (!admitted.ok) return refuseWith(admitted.refusal);
  const claims = admitted.value;
  const denied = (refusal: Refusal) => refuseWith(recordDenial(claims, ACTION, refusal, context));
  const form = readFormHeaders(headers, claims);
  if (!form.ok) return denied(form.refusal);
  const requestClass = clampClass(headers.get('x-auricle-class') ?? undefined, claims.priority);
  const owner = { class: requestClass, tenant: claims.tenant, length: form.value.length };
  const body = new CallerBody(request.body, context.runtime, owner);
  context.discardBody = () => body.discard();
  const read = checkAllowed(readRequestHints(request.url, headers), claims);
  if (!read.ok) return denied(read.refusal);
  const requestHints = read.value;
  const names = await readModelNames(claims, context);

  // The allowance comes before the body: a request without a slot has no byte buffered.
  const model = requestHints.model && names(requestHints.model);
  const subject = { action: ACTION, ...named({ ...requestHints, model }), class: requestClass };
  const session = await Session.begin(claims, subject, context);
  if (!session.ok) return refuseWith(session.refusal);
  const serving = serve(request, { ...form.value, body, requestHints, names }, session.value, context);
  // A caller that goes away must not take the end of its request along.
  context.waitUntil(serving);
  return serving;
}

/** Headers of a multipart form. */
interface FormHeaders {
  readonly contentType: string;
  readonly boundary: string;
  readonly length: number | undefined;
}

/** Checks what can be refused before a byte of the body was read. */
function readFormHeaders(headers: Headers, claims: Claims): Result<FormHeaders> {
  if (claims.sealing === 'client') return no(refuse('sealing_required'));
  const contentType = headers.get('content-type') ?? '';
  if (!/^multipart\/form-data\s*(;|$)/i.test(contentType)) return no(refuse('content_type_wrong'));
  const longest = CONTENT_TYPE_CHARACTERS;
  if (contentType.length > longest) {
    return no(refuse('content_type_invalid', { rule: `has more than ${longest} characters` }));
  }
  const boundary = readBoundary(contentType);
  if (boundary === undefined) {
    return no(refuse('content_type_invalid', { rule: 'needs a boundary of 1 to 70 characters' }));
  }
  const length = readLength(headers);
  if ((length ?? 0) > BODY_BYTES) return no(refuse('body_too_large', { limit: BODY_BYTES }));
  return ok({ contentType, boundary, length });
}

/** A form whose caller is admitted. */
interface Form extends FormHeaders {
  readonly body: CallerBody;
  readonly requestHints: RequestHints;
  readonly names: ModelNames;
}

async function serve(
  request: Request,
  { contentType, boundary, body, requestHints, names }: Form,
  session: Session,
  context: RequestContext,
): Promise<Response> {
  const fail = (refusal: Refusal) => {
    body.cancel();
    return session.end({ ...(body.isCut ? CLIENT_GONE : refusedWith(refusal)), bytes: body.received });
  };
  let hints: Result<Hints>;
  let agentRequest: Result<AgentRequest<AnswerEvent>>;
  try {
    const byDefault = names(undefined) && DEFAULT_NAME;
    const read = checkAllowed(await readHints(requestHints, body, { boundary, byDefault }), session.claims);
    const model = read.ok ? resolveModel(read.value.model, names, context) : read;
    hints = read.ok && model.ok ? ok({ ...read.value, model: model.value }) : read;
    const head = { dialect: 'openai-audio', contentType, prompt: hints.ok ? hints.value.prompt : undefined };
    agentRequest = hints.ok ? await transcription(hints.value, head, session.claims, context) : hints;
  } catch (error) {
    await fail(refuse('internal'));
    throw error;
  }
  if (!hints.ok || !agentRequest.ok) {
    const { refusal } = (hints.ok ? agentRequest : hints) as { refusal: Refusal };
    await fail(refusal);
    return refuseWith(refusal);
  }
  session.learn(named(agentRequest.value.hints));
  const relay = new Relay(session, body, agentRequest.value, context);
  relay.watch(request.signal);
  return answerTranscription(sourceOf(relay, { claims: session.claims, hints: hints.value, names }, context));
}

export function checkAllowed<T extends RequestHints>(hints: Result<T>, { languages }: Claims): Result<T> {
  if (!hints.ok || isOpen(hints.value.language) || allowsLanguage(languages, hints.value.language)) return hints;
  return no(refuse('language_forbidden', { language: hints.value.language }));
}

/** Returns the facts for the record. */
export const named = ({ model, language }: Partial<Pick<RequestHints, 'model' | 'language'>>) => ({
  model,
  language: isOpen(language) ? undefined : language,
});

/** Facts by which a form may be served. */
interface Permitted {
  readonly claims: Claims;
  readonly hints: Hints;
  readonly names: ModelNames;
}

const degradedBy = ({ degraded: level, cached }: Extract<AnswerEvent, { type: 'form' }>) =>
  level === undefined ? undefined : { level, isCached: cached === true };

/** Joins a relay and the caller's permissions for a protocol adapter. */
export function sourceOf(
  relay: Relay<AnswerEvent>,
  { claims: { languages }, hints, names }: Permitted,
  context: RequestContext,
): Source {
  const mayUse = (language: string | undefined, isAllowed: boolean): Result<undefined> =>
    isAllowed ? ok(undefined) : no(refuse('language_forbidden', { language: language ?? '' }));
  return {
    request: context.id,
    deliver: () => relay.deliver(),
    broke: (error) => relay.broke(error),
    abandon: relay.abandon,
    async next() {
      const event = await relay.next();
      if (event.ok && event.value.type === 'form') context.degraded = degradedBy(event.value);
      return event;
    },
    check(fields) {
      // An agent completes a form without a model by the member of the family that it serves.
      const isServed = fields.model?.[0] === context.model;
      const kept = checkPromise(isServed ? { ...fields, model: [] } : fields, hints, names);
      if (!kept.ok) return kept;
      const language = tagOfLanguage(fields.language?.[0] ?? '');
      return mayUse(language, isOpen(language) || allowsLanguage(languages, language));
    },
    end(outcome) {
      // A language that the agent was not told is news to the record.
      if (outcome.ok && outcome.value.languageConfidence !== undefined) relay.learn(outcome.value.language);
      return relay.end(outcome, ({ language }) => mayUse(language, allowsSpoken(languages, language)));
    },
  };
}
