import { allowsLanguage, isOpen } from '../../shared/pool/language.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import type { LiveRequest } from '../protocol/live-protocol.ts';
import type { Settings } from '../settings.ts';
import { openResume, type Resumable } from './resume-token.ts';

/** Longest session when the token names none; clients open another, as with every comparable service. */
export const STREAM_SESSION_S = 3_600;

export interface StartContext {
  /** Name of the session's object. */
  readonly session: string;
  readonly settings: Settings;
  /** Epoch ms. */
  readonly now: number;
  /** Family of the model in the request, whose language is to be detected. */
  readonly family?: string | undefined;
  /** Languages of the family among which it is detected. */
  readonly languages?: readonly string[] | undefined;
}

/** Returns the longest duration of a session, ms. */
export const maxDurationMs = ({ sessionSeconds }: Claims): number => Math.min(sessionSeconds, STREAM_SESSION_S) * 1_000;

/** Validates a request for a session. Returns the state to start from: that of the resume token, or a new one. */
export function readStart(request: LiveRequest, claims: Claims, context: StartContext): Result<Resumable> {
  const { session, now, family, languages } = context;
  const { model, language, format } = request;
  if (claims.sealing === 'client') return no(refuse('sealing_required'));
  if (!isOpen(language) && !allowsLanguage(claims.languages, language)) {
    return no(refuse('language_forbidden', { language }));
  }
  const until = now + maxDurationMs(claims);
  if (request.resume !== undefined) return readResume(request.resume, request, claims, { ...context, until });
  if (model === undefined || model === '') return no(refuse('field_missing', { field: 'model' }));
  const { tenant, subject } = claims;
  const optional = {
    ...(subject !== undefined && { subject }),
    ...(language !== undefined && { language }),
    ...(family !== undefined && { family }),
    ...(languages && { languages: [...languages] }),
  };
  return ok({ v: 1, session, tenant, model, format, began: now, until, ...optional });
}

function readResume(
  resume: string,
  { format }: LiveRequest,
  claims: Claims,
  { session, settings, now, until }: StartContext & { readonly until: number },
): Result<Resumable> {
  const token = openResume(resume, settings, now);
  if (!token.ok) return token;
  const facts = token.value;
  const isOwn = facts.session === session && facts.tenant === claims.tenant && facts.subject === claims.subject;
  if (!isOwn || !isSameFormat(facts.format, format)) return no(refuse('resume_invalid'));
  return ok({ ...facts, until: Math.min(facts.until, until) });
}

const isSameFormat = (one: LiveRequest['format'], other: LiveRequest['format']): boolean =>
  one.encoding === other.encoding && one.rate === other.rate && one.channels === other.channels;

/** Reports whether a token would have started a session that another token did, for the rest of its duration. */
export function mayTakeOver(own: Claims, session: Claims, until: number, now: number): boolean {
  return (
    covers(own.zones, session.zones) &&
    covers(own.languages, session.languages) &&
    now + own.sessionSeconds * 1_000 >= until
  );
}

const covers = (own: readonly string[], others: readonly string[]) =>
  own.includes('*') || others.every((one) => own.includes(one));
