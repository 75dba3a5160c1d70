import { z } from 'zod';
import type { Refusal } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { admit, recordDenial } from '../auth/admit.ts';
import { type Grant, type GrantRequest, issueGrant } from '../auth/grant.ts';
import type { RequestContext } from '../context.ts';
import { readJson } from '../http/json-body.ts';
import { refuseWith } from '../http/refuse.ts';
import { refuseField } from '../http/refuse-field.ts';
import { refuseAsDeepgram } from './deepgram-refuse.ts';
import { clientSecretBody, grantBody, narrowed } from './grant-request.ts';
import { defaultConfig, type SessionConfig, showSession, updateConfig } from './openai-realtime-session.ts';

export const grantAnswer = z.object({ access_token: z.string(), expires_in: z.int() });

export const clientSecretAnswer = z.object({
  value: z.string(),
  /** Epoch seconds. */
  expires_at: z.int(),
  session: z.record(z.string(), z.unknown()),
});

/** Prefix of OpenAI's browser keys, which its clients check. */
const secretOf = ({ token }: Grant) => `ek_${token}`;

interface Made<T> {
  readonly request: GrantRequest;
  readonly config?: SessionConfig;
  readonly shown: T;
}

type Make<T> = (body: unknown) => Result<Made<T>>;

/** Makes a token for a caller that may transcribe, and records it before it leaves. */
async function grant<T>(
  request: Request,
  context: RequestContext,
  action: string,
  make: Make<T>,
): Promise<Result<{ grant: Grant; shown: T; now: number }>> {
  const claims = await admit(request, 'transcribe', context);
  if (!claims.ok) return claims;
  const { runtime, settings, recorder, id } = context;
  const denied = (refusal: Refusal) => no(recordDenial(claims.value, action, refusal, context));
  const body = await readJson(request, context);
  if (!body.ok) return denied(body.refusal);
  const made = make(body.value);
  if (!made.ok) return denied(made.refusal);
  const now = runtime.now();
  const { config, shown } = made.value;
  const wanted = { ...made.value.request, realtime: config && remember(config) };
  const issued = await issueGrant(claims.value, wanted, settings, now);
  if (!issued.ok) return denied(issued.refusal);
  const { tenant, subject, audit } = claims.value;
  const { scope, expires, grantee } = issued.value;
  const event = recorder.mint({
    type: 'token.granted',
    tenant,
    request: id,
    action,
    scope,
    expires,
    ...(subject !== undefined && { subject }),
    ...(grantee !== undefined && { grantee }),
  });
  if (audit === 'buffered') recorder.appendEventually(claims.value, { kind: 'record', events: [event] });
  else if (!(await recorder.append(claims.value, { kind: 'record', mode: 'strict', events: [event] }))) {
    return no(recorder.refusal(claims.value, 'a token could not be recorded'));
  }
  return ok({ grant: issued.value, shown, now });
}

/** Returns the members of a configuration from which a new session starts. */
function remember(config: SessionConfig): Record<string, unknown> {
  const { id: _, object: __, expires_at: ___, ...session } = showSession(config, { id: '', expiresAt: 0 });
  return session;
}

export async function answerGrant(request: Request, context: RequestContext): Promise<Response> {
  const granted = await grant(request, context, 'grant', (body) => {
    const read = grantBody.safeParse(body);
    if (!read.success) return no(refuseField(read.error, body));
    return ok({ request: { seconds: read.data.ttl_seconds, ...narrowed(read.data) }, shown: undefined });
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
    if (!read.success) return no(refuseField(read.error, body));
    const config = updateConfig(defaultConfig, read.data.session);
    if (!config.ok) return config;
    const request = { seconds: read.data.expires_after.seconds, ...narrowed(read.data) };
    return ok({ request, config: config.value, shown: config.value });
  });
  if (!granted.ok) return refuseWith(granted.refusal);
  const { grant: issued, shown } = granted.value;
  const session = showSession(shown, { id: newSessionId(), expiresAt: issued.expires });
  const answer: z.infer<typeof clientSecretAnswer> = { value: secretOf(issued), expires_at: issued.expires, session };
  return answerSecret(answer);
}

/** A session gets its own id when it begins; this one only names what was configured. */
const newSessionId = () => `sess_${crypto.randomUUID().replaceAll('-', '').slice(0, 16)}`;

const answerSecret = (body: object): Response => Response.json(body, { headers: { 'cache-control': 'no-store' } });
