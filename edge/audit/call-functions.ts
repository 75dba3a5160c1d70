// Calls the functions of a zone about its audit log.
import type { z } from 'zod';
import { functionsRefusal } from '../../shared/jobs/upload-contract.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { late } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { callFunctions, ruleOf } from '../functions/call-functions.ts';
import { CircuitOpen } from '../functions/circuits.ts';
import { commitmentOfReader, type Reader } from '../ledger/commitment.ts';
import { AUDIT_READ_TIMEOUT_MS } from '../limits.ts';

export interface AuditQuestion {
  readonly zone: string;
  /** Below `/api/audit`, with the slash. */
  readonly path: string;
  /** Present in a POST. */
  readonly body?: unknown;
  /** Queries a zone as an operator, not a tenant. */
  readonly operate?: boolean;
}

/** Returns the successful response as received; any other becomes a refusal. */
export async function callAuditFunctions(
  { zone, path, body, operate = false }: AuditQuestion,
  reader: Reader,
  context: RequestContext,
): Promise<Result<Response>> {
  const { id, settings } = context;
  const baseUrl = settings.functionsUrls.get(zone);
  if (baseUrl === undefined || !settings.auditLogs.has(zone)) return no(refuse('audit_closed'));
  const address = `${baseUrl}/api/audit${path}`;
  // The path builder validated its parts. An address that URL parsing changes is not called.
  if (new URL(address).href !== address) return no(refuse('route_unknown', undefined, 'a path that leads elsewhere'));
  const named = await commitmentOfReader(zone, reader, context);
  if (!named.ok) return named;
  const claims = {
    ...{ tenant: reader.tenant, ...(operate && { operate }) },
    ...(named.value !== undefined && { subject: named.value }),
  };
  const method = body === undefined ? 'GET' : 'POST';
  const call = {
    baseUrl,
    path: `/api/audit${path}`,
    method,
    body,
    claims,
    headers: { 'x-request-id': id },
    ms: AUDIT_READ_TIMEOUT_MS,
  } as const;
  const answered = await callFunctions(call, (response) => response, context);
  if (answered instanceof CircuitOpen) return no({ ...refuse('audit_unreachable'), ...answered });
  if (answered === late || answered === undefined) return no(refuse('audit_unreachable'));
  return answered.ok ? ok(answered) : no(await refusalIn(answered));
}

/** Returns the functions' refusal if it concerns the caller; otherwise `audit_unreachable`. */
export async function refusalIn(answered: Response): Promise<Refusal> {
  const parsed = functionsRefusal.safeParse(await answered.json().catch(() => undefined));
  if (!parsed.success) return refuse('audit_unreachable', undefined, `the functions answered ${answered.status}`);
  const { reason, params } = parsed.data.error;
  const ours = reason.startsWith('token_') || reason === 'scope_missing' || reason === 'uploads_closed';
  if (ours) return refuse('audit_unreachable', ruleOf(params), reason);
  return refuse(reason, params, 'from the functions');
}

/** Calls the functions and parses the response as JSON. */
export async function callAuditFunctionsFor<T extends z.ZodType>(
  question: AuditQuestion,
  schema: T,
  claims: Reader,
  context: RequestContext,
): Promise<Result<z.infer<T>>> {
  const answered = await callAuditFunctions(question, claims, context);
  if (!answered.ok) return answered;
  const parsed = schema.safeParse(await answered.value.json().catch(() => undefined));
  return parsed.success ? ok(parsed.data) : no(refuse('audit_unreachable', undefined, 'an answer not as agreed'));
}
