import { z } from 'zod';
import { limits } from '../../shared/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { RequestContext } from '../context.ts';
import { readJson } from '../json-body.ts';
import { refuseWith } from '../refuse.ts';
import { admit, recordDenial } from '../tenant/admit.ts';
import { GRANT_SCOPE, type Grant, issueGrant } from '../tenant/grant.ts';
import { refuseAsDeepgram } from './deepgram-refuse.ts';
import {
  defaultConfig,
  type SessionConfig,
  showBetaSession,
  showSession,
  updateConfig,
} from './openai-realtime-session.ts';

const seconds = (least: number, most: number, usual: number) => {
  const rule = `must be an integer from ${least} to ${most}`;
  return z
    .int(rule)
    .min(least, rule)
    .max(most, rule)
    .nullish()
    .transform((value) => value ?? usual);
};

/** `POST /v1/auth/grant`, as Deepgram's clients send it. */
export const grantBody = z.object({ ttl_seconds: seconds(1, limits.grantSeconds.value, 30) });
export const grantAnswer = z.object({ access_token: z.string(), expires_in: z.int() });

/** `POST /v1/realtime/client_secrets`, as OpenAI's clients send it. */
export const clientSecretBody = z.object({
  expires_after: z
    .object({
      anchor: z.literal('created_at', 'must be "created_at"').default('created_at'),
      seconds: seconds(10, limits.clientSecretSeconds.value, 600),
    })
    .default({ anchor: 'created_at', seconds: 600 }),
  session: z.record(z.string(), z.unknown()).default({}),
});
export const clientSecretAnswer = z.object({
  value: z.string(),
  /** Seconds since 1970. */
  expires_at: z.int(),
  session: z.record(z.string(), z.unknown()),
});

/** OpenAI's keys for browsers begin so, and its clients look for it. */
const secretOf = ({ token }: Grant) => `ek_${token}`;

type Make<T> = (
  body: unknown,
) => Result<{ readonly seconds: number; readonly config?: SessionConfig; readonly wish: T }>;

/** The way of all three: who asks may transcribe, the record knows of the token before it leaves. */
async function grant<T>(
  request: Request,
  context: RequestContext,
  action: string,
  make: Make<T>,
): Promise<Result<{ grant: Grant; wish: T; now: number }>> {
  // A short-lived token lacks this scope, so none can be exchanged for another.
  const claims = await admit(request, 'transcribe', context);
  if (!claims.ok) return claims;
  const { surroundings, settings, recorder, id } = context;
  const denied = (refusal: Refusal) => {
    recordDenial(claims.value, action, refusal, context);
    return no(refusal);
  };
  const body = await readJson(request, context);
  if (!body.ok) return denied(body.refusal);
  const made = make(body.value);
  if (!made.ok) return denied(made.refusal);
  const now = surroundings.now();
  const { config, wish } = made.value;
  const kept = config && { ...remember(config) };
  const issued = await issueGrant(claims.value, made.value.seconds, settings, now, kept);
  if (!issued.ok) return denied(issued.refusal);
  const { tenant, subject, audit } = claims.value;
  const event = recorder.mint({
    type: 'token.granted',
    tenant,
    request: id,
    action,
    scope: GRANT_SCOPE,
    expires: issued.value.expires,
    ...(subject !== undefined && { subject }),
  });
  const issuing = { kind: 'record', mode: 'strict', events: [event] } as const;
  if (audit === 'buffered') recorder.later(claims.value, [event]);
  else if (!(await recorder.secure(claims.value, issuing, issuing))) {
    return no(refuse('audit_unavailable', undefined, 'a token could not be recorded'));
  }
  return ok({ grant: issued.value, wish, now });
}

/** What of a configuration a new session is made from. */
function remember(config: SessionConfig): Record<string, unknown> {
  const { id: _, object: __, expires_at: ___, ...session } = showSession(config, { id: '', expiresAt: 0 });
  return session;
}

function firstProblem(error: z.ZodError): Result<never> {
  const [issue] = error.issues;
  const field = (issue?.path ?? []).map(String).join('.') || 'body';
  return no(refuse('field_invalid', { field: field.slice(0, 100), rule: issue?.message ?? 'is not understood' }));
}

export async function answerGrant(request: Request, context: RequestContext): Promise<Response> {
  const granted = await grant(request, context, 'grant', (body) => {
    const read = grantBody.safeParse(body);
    return read.success ? ok({ seconds: read.data.ttl_seconds, wish: undefined }) : firstProblem(read.error);
  });
  if (!granted.ok) return refuseAsDeepgram(granted.refusal, context.id);
  const { grant: issued, now } = granted.value;
  const answer: z.infer<typeof grantAnswer> = {
    access_token: issued.token,
    expires_in: issued.expires - Math.floor(now / 1_000),
  };
  return answerSecret(answer);
}

export async function answerClientSecret(request: Request, context: RequestContext): Promise<Response> {
  const granted = await grant(request, context, 'client_secret', (body) => {
    const read = clientSecretBody.safeParse(body);
    if (!read.success) return firstProblem(read.error);
    const config = updateConfig(defaultConfig, read.data.session);
    if (!config.ok) return config;
    return ok({ seconds: read.data.expires_after.seconds, config: config.value, wish: config.value });
  });
  if (!granted.ok) return refuseWith(granted.refusal);
  const { grant: issued, wish } = granted.value;
  const session = showSession(wish, { id: newSessionId(), expiresAt: issued.expires });
  const answer: z.infer<typeof clientSecretAnswer> = { value: secretOf(issued), expires_at: issued.expires, session };
  return answerSecret(answer);
}

/** `POST /v1/realtime/transcription_sessions`: the retired shape, whose body is the session. */
export async function answerTranscriptionSession(request: Request, context: RequestContext): Promise<Response> {
  const granted = await grant(request, context, 'client_secret', (body) => {
    const config = updateConfig(defaultConfig, body);
    if (!config.ok) return config;
    return ok({ seconds: limits.betaSecretSeconds.value, config: config.value, wish: config.value });
  });
  if (!granted.ok) return refuseWith(granted.refusal);
  const { grant: issued, wish } = granted.value;
  const { expires: expires_at } = issued;
  const session = showBetaSession(wish, { id: newSessionId(), expiresAt: expires_at });
  return answerSecret({ ...session, client_secret: { value: secretOf(issued), expires_at } });
}

/** A session gets its own id when it begins; this one only names what was configured. */
const newSessionId = () => `sess_${crypto.randomUUID().replaceAll('-', '').slice(0, 16)}`;

const answerSecret = (body: object): Response => Response.json(body, { headers: { 'cache-control': 'no-store' } });
