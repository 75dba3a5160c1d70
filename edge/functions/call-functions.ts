import { importJWK, type JWTPayload, SignJWT } from 'jose';
import { z } from 'zod';
import {
  DEADLINE_HEADER,
  EDGE_ISSUER,
  FUNCTIONS_AUDIENCE,
  OWNER_HEADER,
  REQUEST_HEADER,
  SERVICE_TYPE,
} from '../../shared/callers.ts';
import { SERVICE_TOKEN_S } from '../../shared/jobs/limits.ts';
import { functionsRefusal } from '../../shared/jobs/upload-contract.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import type { Settings } from '../settings.ts';
import { CIRCUIT_PROBE_MS } from './circuit-breaker.ts';
import { CircuitOpen, openCircuit, passCircuit, probe } from './circuits.ts';

/**
 * Time between the deadline of a call to functions and the edge's refusal: a write that began in time, and
 * its answer.
 */
const FUNCTIONS_MARGIN_MS = 2_000;
/** Longest call of the edge to functions: a few table operations; their host may have to start first. */
export const FUNCTIONS_CALL_MS = 10_000;

// Calls of the edge to the functions of a zone, which hold the storage keys (shared/jobs/upload-contract.ts). The
// edge holds no key of any store: it can do there only what an answer of the functions permits.

export interface Question {
  /** Zone of the functions. */
  readonly zone: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below `/api`, with the slash. */
  readonly path: string;
  readonly body?: unknown;
  /** Seconds of long polling that the answer may take beyond the usual bound. */
  readonly waitSeconds?: number;
  /** Aborts when the client has left. */
  readonly signal?: AbortSignal;
  /** The call is an operator's, about a zone and not a tenant. */
  readonly operate?: boolean;
  /** Only subject whose uploads and projects the answer may contain. */
  readonly owner?: string | undefined;
  /** Only zones whose uploads and projects the answer may contain. */
  readonly zones?: readonly string[];
  /** Id of the object that the call makes. A refusal names it where the call may have been carried out. */
  readonly makes?: string;
}

/** Reports whether a refused call may have been carried out. */
export const mayBeDone = ({ reason, params }: Refusal): boolean =>
  reason === 'uploads_unavailable' && params?.id !== undefined;

/**
 * Calls the functions for a tenant. `undefined` for an empty answer (204). Refuses as the functions do, or
 * with `uploads_unavailable`, or with `uploads_closed` where the zone has no functions.
 */
export async function callFunctionsRoute<T extends z.ZodType>(
  question: Question,
  schema: T,
  tenant: string,
  context: RequestContext,
): Promise<Result<z.infer<T> | undefined>> {
  const baseUrl = context.settings.functionsUrls.get(question.zone);
  if (baseUrl === undefined) return no(refuse('uploads_closed', undefined, `no functions for ${question.zone}`));
  const { path, zones, waitSeconds = 0, operate = false, makes, ...rest } = question;
  const call = {
    ...rest,
    baseUrl,
    path: `/api${path}`,
    claims: { tenant, ...(operate && { operate }), ...(zones && { zones }) },
    ms: FUNCTIONS_CALL_MS + waitSeconds * 1_000,
    // A follower waits for changes, and can wait for functions that restart.
    patient: waitSeconds > 0,
  };
  const answer = await callFunctions(call, readStatus, context);
  if (answer instanceof CircuitOpen) return no({ ...unavailable('did not answer a probe'), ...answer });
  if (answer === undefined || answer === late) {
    const detail = answer === late ? 'do not answer' : 'cannot be reached';
    return no({ ...unsettled(detail, makes), ...openCircuit(baseUrl) });
  }
  const read = readAnswer(answer, schema, makes);
  if (read.ok || read.refusal.detail !== STORAGE_SILENT) return read;
  await probe(baseUrl, context.runtime);
  return no({ ...read.refusal, ...openCircuit(baseUrl) });
}

async function readStatus(response: Response): Promise<{ status: number; body: unknown }> {
  const { status } = response;
  return { status, body: status === 204 ? undefined : await response.json() };
}

export interface Call extends Pick<Question, 'method' | 'body' | 'signal' | 'owner'> {
  /** Address of the functions, and the path below it. */
  readonly baseUrl: string;
  readonly path: string;
  /** The call is sent while the circuit is open, too. */
  readonly patient?: boolean;
  /** Claims of the call's token. */
  readonly claims: JWTPayload;
  readonly headers?: Readonly<Record<string, string>>;
  /** Bound of the whole answer, as far as `read` reads it, ms. */
  readonly ms: number;
}

/**
 * Calls functions with a token of its own. `undefined` when they are unreachable or unreadable, `late` on a
 * time-out; both begin a probe, whose result is known when this returns. A call that may change state bears a
 * deadline `FUNCTIONS_MARGIN_MS` before this time-out, after which functions drop it.
 */
export async function callFunctions<T>(
  { patient = false, ...call }: Call,
  read: (response: Response) => Promise<T> | T,
  context: RequestContext,
): Promise<T | typeof late | CircuitOpen | undefined> {
  const { runtime } = context;
  const open = patient ? undefined : await passCircuit(call.baseUrl, context);
  if (open) return open;
  const leaving = new AbortController();
  const signal = call.signal ? AbortSignal.any([leaving.signal, call.signal]) : leaving.signal;
  const answering = send({ ...call, signal }, context)
    .then(read)
    .catch(() => undefined);
  let answered = await within(answering, call.ms - CIRCUIT_PROBE_MS, runtime);
  if (answered === late) {
    const probing = probe(call.baseUrl, runtime);
    answered = await within(answering, CIRCUIT_PROBE_MS, runtime);
    if (answered === late) leaving.abort();
    if (answered === late || answered === undefined) await probing;
    else context.waitUntil(probing);
  } else if (answered === undefined && !call.signal?.aborted) await probe(call.baseUrl, runtime);
  return answered;
}

async function send(
  { baseUrl, path, method, claims, owner, headers, body, ms, signal }: Call,
  { id, span, settings, runtime }: RequestContext,
): Promise<Response> {
  const now = runtime.now();
  return fetch(`${baseUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${await signService(settings, claims, now, owner)}`,
      ...(method !== 'GET' && { [DEADLINE_HEADER]: String(now + ms - FUNCTIONS_MARGIN_MS) }),
      [REQUEST_HEADER]: id,
      ...(span && { traceparent: span.traceparent }),
      ...headers,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    redirect: 'manual',
    ...(signal && { signal }),
  });
}

const unavailable = (detail: string, params?: Refusal['params']): Refusal =>
  refuse('uploads_unavailable', params, `the functions ${detail}`);

/** Refusal of a call that may have been carried out. `id`: of the object that it makes. */
const unsettled = (detail: string, id: string | undefined): Refusal =>
  unavailable(detail, id === undefined ? undefined : openOutcome(id));

/** Parameters of a refusal with an open outcome: they name the object. */
export const openOutcome = (id: string): NonNullable<Refusal['params']> => ({
  id,
  rule: `whether ${id} was made is not known; get it by its id, or repeat the request with the same Idempotency-Key`,
});

const STORAGE_SILENT = 'the functions get no answer of storage';

function readAnswer<T extends z.ZodType>(
  { status, body }: { status: number; body: unknown },
  schema: T,
  makes: string | undefined,
): Result<z.infer<T> | undefined> {
  if (status === 204) return ok(undefined);
  if (status >= 200 && status < 300) {
    const parsed = schema.safeParse(body);
    return parsed.success
      ? ok(parsed.data)
      : no(unsettled(`answer otherwise: ${z.prettifyError(parsed.error)}`, makes));
  }
  const parsed = functionsRefusal.safeParse(body);
  if (!parsed.success) return no(unsettled(`answered ${status}`, makes));
  const { reason, params } = parsed.data.error;
  if (reason === 'uploads_unavailable') return no({ ...unsettled('', makes), detail: STORAGE_SILENT });
  if (reason === 'storage_unavailable') return no(refuse(reason, params, STORAGE_SILENT));
  // A rejected edge token is an operator's fault and no business of the caller.
  return reason.startsWith('token_') || reason === 'scope_missing'
    ? no(unavailable(`refused with ${reason}`, ruleOf(params)))
    : no(refuse(reason, params, 'from the functions'));
}

/** Returns the rule of a refused edge token, which names a wrong clock, for operators. */
export const ruleOf = (params: Refusal['params']): { readonly rule: string } | undefined =>
  params?.rule === undefined ? undefined : { rule: String(params.rule) };

type SigningKey = Awaited<ReturnType<typeof importJWK>>;
const keys = new WeakMap<Settings, SigningKey>();

/**
 * Signs a token for a call to the functions, valid for one minute. Settings with functions have an EDGE_KEY.
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
    .setExpirationTime(issued + SERVICE_TOKEN_S)
    .sign(key, own ? { crit: { [OWNER_HEADER]: true } } : {});
}
