import { limits } from '../../shared/limits.ts';
import { allowsLanguage, isOpen, mayHear } from '../../shared/pool/language.ts';
import { type Refusal, refusals, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { type Claims, clampClass } from '../../shared/tenant/claims.ts';
import { logBug } from '../bug.ts';
import type { RequestContext } from '../context.ts';
import { answerTranscription, type Source } from '../dialect/openai-audio.ts';
import { refuseWith } from '../refuse.ts';
import { admit, recordDenial } from '../tenant/admit.ts';
import { CallerBody } from './body.ts';
import { checkPromise, type Hints, readHints, readTold, type Told } from './hints.ts';
import { Relay } from './relay.ts';
import { readBoundary } from './scan.ts';
import { CLIENT_GONE, refusedWith, Session } from './session.ts';

const ACTION = 'transcribe';

/** `POST /v1/audio/transcriptions`: from the caller's request to the answer, or to the refusal of whatever failed. */
export async function transcribe(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, ACTION, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const denied = (refusal: Refusal) => {
    recordDenial(claims.value, ACTION, refusal, context);
    return refuseWith(refusal);
  };
  const boundary = readFrame(request, claims.value);
  if (!boundary.ok) return denied(boundary.refusal);

  const body = new CallerBody(request.body, context.surroundings);
  context.discardBody = () => body.discard();
  const url = new URL(request.url);
  const told = checkAllowed(readTold(url, request.headers), claims.value);
  if (!told.ok) return denied(told.refusal);

  // The place comes before the body: whoever has none has no bytes held here.
  const requestClass = clampClass(told.value.class, claims.value.priority);
  const subject = { action: ACTION, ...named(told.value), class: requestClass };
  const session = await Session.begin(claims.value, subject, context);
  if (!session.ok) return denied(session.refusal);

  const listening = listen(told.value, body, boundary.value, session.value);
  // A caller that goes away meanwhile must not take the end of its request along.
  context.waitUntil(listening);
  const hints = await listening;
  if (!hints.ok) return refuseWith(hints.refusal);
  const { model, language } = hints.value;

  const head = {
    v: 1,
    task: 'transcribe',
    dialect: 'openai-audio',
    contentType: request.headers.get('content-type'),
    model,
    ...(language !== undefined && { language }),
  };
  const relay = new Relay(session.value, body, hints.value, head, context);
  const source = join(relay, session.value, body, hints.value, context);
  request.signal.addEventListener('abort', source.abandon, { once: true });
  if (request.signal.aborted) source.abandon();
  return answerTranscription(source);
}

/** What can be refused before a byte of the body was read; gives the boundary of the form. */
function readFrame({ headers }: Request, claims: Claims): Result<string> {
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
  const length = Number(headers.get('content-length') ?? 0);
  if (length > limits.bodyBytes.value) return no(refuse('body_too_large', { limit: limits.bodyBytes.value }));
  return ok(boundary);
}

/** The hints, when the session knows them, too. A refusal has ended it. */
async function listen(told: Told, body: CallerBody, boundary: string, session: Session): Promise<Result<Hints>> {
  const fail = (refusal: Refusal) => {
    body.cancel();
    return session.end({ ...refusedWith(refusal), bytes: body.received });
  };
  try {
    const hints = checkAllowed(await readHints(told, body, boundary), session.claims);
    if (hints.ok) session.learn(named(hints.value));
    else await fail(hints.refusal);
    return hints;
  } catch (error) {
    await fail(refuse('internal'));
    throw error;
  }
}

function checkAllowed<T extends Told>(told: Result<T>, { languages }: Claims): Result<T> {
  if (!told.ok || isOpen(told.value.language) || allowsLanguage(languages, told.value.language)) return told;
  return no(refuse('language_forbidden', { language: told.value.language }));
}

/** What of it goes into the record. */
const named = ({ model, language }: Told) => ({ model, language: isOpen(language) ? undefined : language });

/** The relay's events for a dialect, and the dialect's end for the session. */
function join(relay: Relay, session: Session, body: CallerBody, hints: Hints, context: RequestContext): Source {
  const ending = () => ({ agent: relay.agent, bytes: body.received });
  let abandoned = false;
  return {
    next: () => relay.next(),
    deliver: () => {
      relay.delivered = true;
    },
    check(fields) {
      const kept = checkPromise(fields, hints);
      if (!kept.ok) return kept;
      const language = fields.language?.[0];
      if (isOpen(language) || allowsLanguage(session.claims.languages, language)) return ok(undefined);
      return no(refuse('language_forbidden', { language }));
    },
    async end(outcome) {
      relay.close(outcome.ok ? 'served' : outcome.refusal.reason);
      if (!outcome.ok) {
        if (!abandoned) logFailure(context.id, outcome.refusal, relay.agent);
        await session.end({ ...refusedWith(outcome.refusal), ...ending() });
        return ok(undefined);
      }
      const { language } = outcome.value;
      if (!mayHear(session.claims.languages, language)) {
        const refusal = refuse('language_forbidden', { language });
        await session.end({ ...refusedWith(refusal), final: outcome.value, ...ending() });
        return no(refusal);
      }
      const settled = session.end({ status: 200, final: outcome.value, ...ending() });
      if (session.claims.audit === 'buffered' || (await settled)) return ok(undefined);
      return no(refuse('audit_unavailable', undefined, 'the end could not be recorded'));
    },
    async broke(error) {
      logBug(context.id, error);
      const refusal = refuse('internal');
      try {
        relay.close(refusal.reason);
      } finally {
        await session.end({ ...refusedWith(refusal), ...ending() });
      }
      return refusal;
    },
    abandon() {
      abandoned = true;
      relay.close(CLIENT_GONE.reason);
      void session.end({ ...CLIENT_GONE, ...ending() });
    },
  };
}

/** One line for what is ours to mend; a caller's own mistakes are in the record only. Details never hold content. */
function logFailure(request: string, { reason, detail }: Refusal, agent: string | undefined): void {
  if (refusals[reason].status >= 500) console.warn(JSON.stringify({ event: 'failed', request, reason, detail, agent }));
}
