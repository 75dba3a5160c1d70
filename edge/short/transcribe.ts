import { limits } from '../../shared/limits.ts';
import { allowsLanguage, isOpen, mayHear } from '../../shared/pool/language.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { readTranscriptEvent } from '../../shared/speech/read-event.ts';
import type { AnswerEvent } from '../../shared/speech/transcript.ts';
import { type Claims, clampClass } from '../../shared/tenant/claims.ts';
import { readLength, uploadOf } from '../body-source.ts';
import type { RequestContext } from '../context.ts';
import { answerTranscription, type Source } from '../dialect/openai-audio.ts';
import { refuseWith } from '../refuse.ts';
import { admit, recordDenial } from '../tenant/admit.ts';
import { takeForm, wantsUpload } from '../upload/take-form.ts';
import { CallerBody } from './body.ts';
import { joinEnds } from './ends.ts';
import { checkPromise, type Hints, readHints, readTold, type Told } from './hints.ts';
import { Relay } from './relay.ts';
import { readBoundary } from './scan.ts';
import { refusedWith, Session } from './session.ts';
import { watchCaller } from './watch.ts';

const ACTION = 'transcribe';

/** `POST /v1/audio/transcriptions`: from the caller's request to the answer, or to the refusal of whatever failed. */
export function transcribe(request: Request, context: RequestContext): Response | Promise<Response> {
  // Asked for once: what is asked of the runtime again and again is a good part of what a short request costs.
  const { headers } = request;
  if (wantsUpload(headers)) return takeForm(request, context);
  const admitting = admit({ headers }, ACTION, context);
  // Here and below: a usual request of a busy caller has nothing to wait for before its body.
  return admitting instanceof Promise
    ? admitting.then((claims) => transcribeFor(claims, request, headers, context))
    : transcribeFor(admitting, request, headers, context);
}

function transcribeFor(
  admitted: Result<Claims>,
  request: Request,
  headers: Headers,
  context: RequestContext,
): Response | Promise<Response> {
  if (!admitted.ok) return refuseWith(admitted.refusal);
  const claims = admitted.value;
  const denied = (refusal: Refusal) => {
    recordDenial(claims, ACTION, refusal, context);
    return refuseWith(refusal);
  };
  const frame = readFrame(headers, claims);
  if (!frame.ok) return denied(frame.refusal);

  const requestClass = clampClass(headers.get('x-auricle-class') ?? undefined, claims.priority);
  const holder = { class: requestClass, tenant: claims.tenant };
  const body = new CallerBody(uploadOf(request, frame.value.length), context.surroundings, holder);
  context.discardBody = () => body.discard();
  const told = checkAllowed(readTold(request.url, headers), claims);
  if (!told.ok) return denied(told.refusal);

  // The place comes before the body: whoever has none has no bytes held here.
  const subject = { action: ACTION, ...named(told.value), class: requestClass };
  const begun = (session: Result<Session>) => {
    if (!session.ok) return denied(session.refusal);
    const serving = serve(request, body, told.value, frame.value, session.value, context);
    // A caller that goes away meanwhile must not take the end of its request along.
    context.waitUntil(serving);
    return serving;
  };
  const beginning = Session.begin(claims, subject, context);
  return beginning instanceof Promise ? beginning.then(begun) : begun(beginning);
}

async function serve(
  request: Request,
  body: CallerBody,
  told: Told,
  { boundary, contentType }: Frame,
  session: Session,
  context: RequestContext,
): Promise<Response> {
  let abandon: (() => void) | undefined;
  let left = false;
  const unwatch = watchCaller(
    request,
    () => {
      left = true;
      abandon?.();
    },
    context,
  );
  const listening = listen(told, body, boundary, session);
  const hints = listening instanceof Promise ? await listening : listening;
  if (!hints.ok) {
    unwatch();
    return refuseWith(hints.refusal);
  }
  const { model, language } = hints.value;
  const head = { v: 1, task: 'transcribe', dialect: 'openai-audio', contentType, model, language };
  const errand = { task: 'transcribe', hints: hints.value, head, read: readTranscriptEvent, textOf } as const;
  const relay = new Relay(session, body, errand, context);
  const source = join(relay, session, body, hints.value, context);
  relay.over = unwatch;
  abandon = source.abandon;
  if (left) abandon();
  return answerTranscription(source);
}

/** What the headers say of the form. */
interface Frame {
  readonly contentType: string;
  readonly boundary: string;
  readonly length: number | undefined;
}

/** What can be refused before a byte of the body was read. */
function readFrame(headers: Headers, claims: Claims): Result<Frame> {
  if (claims.sealing === 'client') return no(refuse('sealing_required'));
  const contentType = headers.get('content-type') ?? '';
  if (!/^multipart\/form-data\s*(;|$)/i.test(contentType)) return no(refuse('content_type_wrong'));
  const longest = limits.contentTypeCharacters.value;
  if (contentType.length > longest) {
    return no(refuse('content_type_invalid', { rule: `has more than ${longest} characters` }));
  }
  const boundary = readBoundary(contentType);
  if (boundary === undefined) {
    return no(refuse('content_type_invalid', { rule: 'needs a boundary of 1 to 70 characters' }));
  }
  const length = readLength(headers);
  if ((length ?? 0) > limits.bodyBytes.value) return no(refuse('body_too_large', { limit: limits.bodyBytes.value }));
  return ok({ contentType, boundary, length });
}

/** The hints, when the session knows them, too. A refusal has ended it. */
function listen(
  told: Told,
  body: CallerBody,
  boundary: string,
  session: Session,
): Result<Hints> | Promise<Result<Hints>> {
  const fail = (refusal: Refusal) => {
    body.cancel();
    return session.end({ ...refusedWith(refusal), bytes: body.received });
  };
  const heard = (read: Result<Hints>): Result<Hints> | Promise<Result<Hints>> => {
    const hints = checkAllowed(read, session.claims);
    if (!hints.ok) return fail(hints.refusal).then(() => hints);
    session.learn(named(hints.value));
    return hints;
  };
  const broke = async (error: unknown): Promise<never> => {
    await fail(refuse('internal'));
    throw error;
  };
  try {
    const hints = readHints(told, body, boundary);
    return hints instanceof Promise ? hints.then(heard).catch(broke) : heard(hints);
  } catch (error) {
    return broke(error);
  }
}

export function checkAllowed<T extends Told>(told: Result<T>, { languages }: Claims): Result<T> {
  if (!told.ok || isOpen(told.value.language) || allowsLanguage(languages, told.value.language)) return told;
  return no(refuse('language_forbidden', { language: told.value.language }));
}

/** What was heard, for whom a copy is compared with it. */
export const textOf = (event: AnswerEvent): string | undefined => (event.type === 'segment' ? event.text : undefined);

/** What of it goes into the record. */
export const named = ({ model, language }: Told) => ({ model, language: isOpen(language) ? undefined : language });

/** The relay's events for a dialect, and the dialect's end for the session. */
export function join(
  relay: Relay<AnswerEvent>,
  session: Session,
  body: CallerBody,
  hints: Hints,
  context: RequestContext,
): Source {
  const { languages } = session.claims;
  const ends = joinEnds(relay, session, body, context);
  return {
    request: context.id,
    deliver: ends.deliver,
    broke: ends.broke,
    abandon: ends.abandon,
    next: () => relay.next(),
    check(fields) {
      const kept = checkPromise(fields, hints);
      if (!kept.ok) return kept;
      const language = fields.language?.[0];
      if (isOpen(language) || allowsLanguage(languages, language)) return ok(undefined);
      return no(refuse('language_forbidden', { language }));
    },
    end: (outcome) =>
      ends.end(outcome, ({ language }) =>
        mayHear(languages, language) ? ok(undefined) : no(refuse('language_forbidden', { language })),
      ),
  };
}
