import { importJWK, type JWTPayload, SignJWT } from 'jose';
import { z } from 'zod';
import { limits } from '../../shared/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { EDGE_ISSUER, FUNCTIONS_AUDIENCE, OWNER_HEADER, SERVICE_TYPE } from '../../shared/upload/callers.ts';
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
  /** The only subject whose uploads and projects the answer may be about. */
  readonly owner?: string | undefined;
  /** The only zones whose uploads and projects the answer may be about. */
  readonly zones?: readonly string[];
}

/**
 * Asks for a tenant. `undefined` when there is nothing to say (204). Refuses with what the functions refuse with, or with
 * `uploads_unavailable`, or `uploads_closed` where the zone has none.
 */
export async function askBackOffice<T extends z.ZodType>(
  question: Question,
  schema: T,
  tenant: string,
  context: RequestContext,
): Promise<Result<z.infer<T> | undefined>> {
  const office = context.settings.backOffices.get(question.zone);
  if (office === undefined) return no(refuse('uploads_closed', undefined, `no functions for ${question.zone}`));
  const { path, zones, waitSeconds = 0, operate = false, ...rest } = question;
  const call = {
    ...rest,
    address: `${office}/api${path}`,
    claims: { tenant, ...(operate && { operate }), ...(zones && { zones }) },
    ms: limits.uploadAskMs.value + waitSeconds * 1_000,
  };
  const answer = await callFunctions(call, readStatus, context);
  if (answer === undefined) return unavailable('cannot be reached');
  if (answer === late) return unavailable('do not answer');
  return readAnswer(answer, schema);
}

async function readStatus(response: Response): Promise<{ status: number; body: unknown }> {
  const { status } = response;
  return { status, body: status === 204 ? undefined : await response.json() };
}

export interface Call extends Pick<Question, 'method' | 'body' | 'signal' | 'owner'> {
  readonly address: string;
  /** Of the token: who asks. */
  readonly claims: JWTPayload;
  readonly headers?: Readonly<Record<string, string>>;
  /** The answer may take so long, as far as `read` reads it. */
  readonly ms: number;
}

/** Asks functions with a token of its own. `undefined` when they cannot be reached or read, `late` when they do not answer. */
export async function callFunctions<T>(
  { address, method, claims, owner, headers, body, ms, signal }: Call,
  read: (response: Response) => Promise<T> | T,
  { settings, surroundings }: RequestContext,
): Promise<T | typeof late | undefined> {
  const asking = new AbortController();
  const ask = async () =>
    read(
      await fetch(address, {
        method,
        headers: {
          authorization: `Bearer ${await signService(settings, claims, surroundings.now(), owner)}`,
          ...headers,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        redirect: 'manual',
        signal: signal ? AbortSignal.any([asking.signal, signal]) : asking.signal,
      }),
    );
  const answered = await within(ask(), ms, surroundings).catch(() => undefined);
  if (answered === late) asking.abort();
  return answered;
}

const unavailable = (detail: string, rule?: string) =>
  no(refuse('uploads_unavailable', rule === undefined ? undefined : { rule }, `the functions ${detail}`));

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
    ? unavailable(`refused with ${reason}`, ruleOf(params))
    : no(refuse(reason, params, 'from the functions'));
}

/** A rule beside a refused token of the edge names a clock: operators have to know. */
export const ruleOf = (params: Refusal['params']): string | undefined =>
  params?.rule === undefined ? undefined : String(params.rule);

type SigningKey = Awaited<ReturnType<typeof importJWK>>;
const keys = new WeakMap<Settings, SigningKey>();

/**
 * Signs a token that says for whom the edge calls the functions, for one minute. Where there are functions there is an
 * EDGE_KEY.
 */
export async function signService(
  settings: Settings,
  claims: JWTPayload,
  now: number,
  owner?: string,
): Promise<string> {
  const jwk = settings.edgeKey;
  if (!jwk) throw new Error('no EDGE_KEY');
  let key = keys.get(settings);
  if (!key) {
    key = await importJWK(jwk, 'ES256');
    keys.set(settings, key);
  }
  const issued = Math.floor(now / 1_000);
  const own = owner !== undefined && { crit: [OWNER_HEADER], [OWNER_HEADER]: owner };
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'ES256', typ: SERVICE_TYPE, ...(jwk.kid !== undefined && { kid: jwk.kid }), ...own })
    .setIssuer(EDGE_ISSUER)
    .setAudience(FUNCTIONS_AUDIENCE)
    .setIssuedAt(issued)
    .setExpirationTime(issued + limits.serviceTokenSeconds.value)
    .sign(key, own ? { crit: { [OWNER_HEADER]: true } } : {});
}
