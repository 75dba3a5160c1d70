import { importJWK, type JWTPayload, SignJWT } from 'jose';
import { z } from 'zod';
import { limits } from '../../shared/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { EDGE_ISSUER, FUNCTIONS_AUDIENCE, SERVICE_TYPE } from '../../shared/upload/callers.ts';
import { backOfficeRefusal } from '../../shared/upload/contract.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import type { Settings } from '../settings.ts';

// The functions of a zone, which hold the storage keys, as the edge asks them (shared/upload/contract.ts). The edge
// itself holds no key of any store: what it can do there is what an answer of this file lets it do.

export interface Question {
  /** Whose functions. */
  readonly zone: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below `/api`, with the slash. */
  readonly path: string;
  readonly body?: unknown;
  /** Seconds the answer may take longer than usual, since news are waited for. */
  readonly waitSeconds?: number;
  /** Whoever asks is gone. */
  readonly signal?: AbortSignal;
  /** An operator asks, about a zone and not about a tenant. */
  readonly operate?: boolean;
}

/**
 * Asks for a tenant. `undefined` when there is nothing to say (204). Refuses with what the functions refuse with, or with
 * `uploads_unavailable`, or `uploads_closed` where the zone has none.
 */
export async function askBackOffice<T extends z.ZodType>(
  question: Question,
  schema: T,
  tenant: string,
  { settings, surroundings }: RequestContext,
): Promise<Result<z.infer<T> | undefined>> {
  const office = settings.backOffices.get(question.zone);
  if (office === undefined) return no(refuse('uploads_closed', undefined, `no functions for ${question.zone}`));
  const { method, path, body, waitSeconds = 0, operate = false, signal } = question;
  const claims = { tenant, ...(operate && { operate }) };
  const asking = new AbortController();
  const ask = async () => {
    const response = await fetch(`${office}/api${path}`, {
      method,
      headers: {
        authorization: `Bearer ${await signService(settings, claims, surroundings.now())}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      redirect: 'manual',
      signal: signal ? AbortSignal.any([asking.signal, signal]) : asking.signal,
    });
    const { status } = response;
    if (status === 204) return { status, body: undefined };
    return { status, body: await response.json() };
  };
  let answer: { status: number; body: unknown } | typeof late;
  try {
    answer = await within(ask(), limits.uploadAskMs.value + waitSeconds * 1_000, surroundings);
  } catch {
    return unavailable('cannot be reached');
  }
  if (answer === late) {
    asking.abort();
    return unavailable('do not answer');
  }
  return readAnswer(answer, schema);
}

const unavailable = (detail: string) => no(refuse('uploads_unavailable', undefined, `the functions ${detail}`));

function readAnswer<T extends z.ZodType>(
  { status, body }: { status: number; body: unknown },
  schema: T,
): Result<z.infer<T> | undefined> {
  if (status === 204) return ok(undefined);
  if (status >= 200 && status < 300) {
    const parsed = schema.safeParse(body);
    return parsed.success ? ok(parsed.data) : unavailable(`answer otherwise: ${z.prettifyError(parsed.error)}`);
  }
  const said = backOfficeRefusal.safeParse(body);
  if (!said.success) return unavailable(`answered ${status}`);
  const { reason, params } = said.data.error;
  // That they do not believe this edge is not the caller's fault, and not theirs to know.
  return reason.startsWith('token_') || reason === 'scope_missing'
    ? unavailable(`refused with ${reason}`)
    : no(refuse(reason, params, 'from the functions'));
}

type SigningKey = Awaited<ReturnType<typeof importJWK>>;
const keys = new WeakMap<Settings, SigningKey>();

/** Who asks, for whom, for one minute. */
export async function signService(settings: Settings, claims: JWTPayload, now: number): Promise<string> {
  const jwk = settings.grantKey ?? settings.ticketKey;
  let key = keys.get(settings);
  if (!key) {
    key = await importJWK(jwk, 'ES256');
    keys.set(settings, key);
  }
  const issued = Math.floor(now / 1_000);
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'ES256', typ: SERVICE_TYPE, ...(jwk.kid !== undefined && { kid: jwk.kid }) })
    .setIssuer(EDGE_ISSUER)
    .setAudience(FUNCTIONS_AUDIENCE)
    .setIssuedAt(issued)
    .setExpirationTime(issued + limits.serviceTokenSeconds.value)
    .sign(key);
}
