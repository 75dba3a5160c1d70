import type { z } from 'zod';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { type Claims, clampClass } from '../../shared/tenant/claims.ts';
import { admit, recordDenial } from '../auth/admit.ts';
import type { RequestContext } from '../context.ts';
import { Session } from '../ledger/session.ts';
import { readSnapshots } from '../routing/snapshot.ts';
import { callJob } from './find-job.ts';
import type { JobKind, JobRow } from './kinds.ts';

/** A sealed result of a job: a transcript, or a part of a spoken document. */
interface ResultAddress<Row extends JobRow, T extends z.ZodType<{ readonly zone: string }>> {
  readonly kind: JobKind<Row>;
  /** Action of the audit record. */
  readonly action: string;
  readonly id: string;
  /** Path below the job that opens the result. */
  readonly below: Result<string>;
  /** Schema of the functions' answer. */
  readonly schema: T;
}

interface OpenedResult<T> {
  readonly opened: T;
  /** The caller ends it. */
  readonly session: Session;
}

/**
 * Authenticates a reader of results. Refuses a token that demands client sealing: no route returns plaintext that a client
 * could open by itself.
 */
export async function admitReader<Row extends JobRow>(
  request: Request,
  kind: JobKind<Row>,
  action: string,
  context: RequestContext,
): Promise<Result<Claims>> {
  const claims = await admit(request, kind.scope, context);
  if (!claims.ok || claims.value.sealing !== 'client') return claims;
  return no(recordDenial(claims.value, action, refuse('sealing_required'), context));
}

/** Begins a session and gets the address of a result from the functions. */
export async function openResult<Row extends JobRow, T extends z.ZodType<{ readonly zone: string }>>(
  { kind, action, id, below, schema }: ResultAddress<Row, T>,
  claims: Claims,
  context: RequestContext,
): Promise<Result<OpenedResult<z.infer<T>>>> {
  const subject = { action, model: undefined, language: undefined };
  const requestClass = clampClass('interactive', claims.priority);
  const session = await Session.begin(claims, { ...subject, class: requestClass }, context);
  if (!session.ok) return session;
  const opened = await session.value.guard(async (): Promise<Result<z.infer<T>>> => {
    if (!below.ok) return below;
    const found = await callJob({ kind, id, method: 'POST', below: below.value }, schema, claims, context);
    if (!found.ok) return found;
    const { value } = found.value;
    if (!value) return no(refuse('uploads_unavailable', undefined, 'an empty answer'));
    // A result is opened in its own zone only.
    return claims.zones.includes(value.zone) ? ok(value) : no(refuse('residency_mismatch'));
  });
  return opened.ok ? ok({ opened: opened.value, session: session.value }) : opened;
}

/**
 * Returns a model that selects an agent of the zone: `model` where an agent serves it, else any other, since every agent of
 * a zone holds its key.
 */
export async function modelInZone(zone: string, model: string, context: RequestContext): Promise<string> {
  const { settings, env, runtime } = context;
  const snapshots = await readSnapshots(settings.zones, env.ROSTER, runtime);
  const served = snapshots.filter((one) => one.zone === zone).flatMap((one) => one.entries);
  const names = served.flatMap(({ description }) => description.models.map(({ name }) => name));
  return names.includes(model) ? model : (names[0] ?? model);
}
