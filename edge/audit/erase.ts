// Erasures and holds of a subject, sent to every zone that may have its records.
import { z } from 'zod';
import {
  erasure,
  erasureBases,
  erasureBasis,
  hold,
  holds,
  newHold,
  newRelease,
  released,
  waitingErasures,
} from '../../shared/audit/privacy.ts';
import { zoneName } from '../../shared/names.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Claims, Scope } from '../../shared/tenant/claims.ts';
import { admit } from '../auth/admit.ts';
import type { PathParams, RequestContext } from '../context.ts';
import { readJson } from '../http/json-body.ts';
import { refuseWith } from '../http/refuse.ts';
import { refuseField } from '../http/refuse-field.ts';
import { newId } from '../ledger/create-event.ts';
import { callAuditFunctionsFor } from './call-functions.ts';
import { actorCommitment, commitmentsIn, requestActor, zonesOf } from './request-actor.ts';

const zone = zoneName.optional().describe('Zone of the log; default: all zones of the token');

/** Body of `POST /v1/audit/erasures`. */
export const erasureBody = z
  .strictObject({
    ...requestActor,
    basis: erasureBasis.describe(`Legal basis, public in the log: ${erasureBases.join(', ')}, or other:NAME`),
    zone,
  })
  .meta({ anyOf: [{ required: ['subject'] }, { required: ['commitment'] }] });
/** Body of `POST /v1/audit/holds`. */
export const holdBody = z.strictObject({
  ...requestActor,
  id: newHold.shape.id.optional().describe('Chosen by the caller; a repeated id sets no second hold'),
  reason: newHold.shape.reason.describe('Reason in words; hidden in the log'),
  basis: newHold.shape.basis.describe('Short name of the rule or case, public in the log'),
  zone,
});
/** Body of `POST /v1/audit/holds/{id}/release`. */
export const holdReleaseBody = newRelease.pick({ reason: true }).extend({ zone });

const inZone = { zone: z.string() };
export const listedErased = z.object({ object: z.literal('list'), data: z.array(erasure.extend(inZone)) });
export const listedWaiting = z.object({
  object: z.literal('list'),
  data: z.array(waitingErasures.shape.data.element.extend(inZone)),
});
export const listedHolds = z.object({ object: z.literal('list'), data: z.array(hold.extend(inZone)) });
export const listedReleased = z.object({ object: z.literal('list'), data: z.array(released.extend(inZone)) });

/** `POST /v1/audit/erasures` */
export const eraseSubject = (request: Request, context: RequestContext): Promise<Response> =>
  inZones(request, context, { schema: erasureBody }, async ({ basis, ...about }, one, claims) => {
    const subjects = await commitmentsIn(one, about, claims, context);
    const actor = await actorCommitment(one, claims, context);
    if (!subjects.ok || !actor.ok) return subjects.ok ? (actor as Result<never>) : subjects;
    if (!subjects.value) return no(refuse('field_missing', { field: 'subject' }));
    const body = { subjects: subjects.value, basis, ...actor.value };
    return list(
      one,
      await callAuditFunctionsFor({ zone: one, path: `/${one}/erasures`, body }, erasure, claims, context),
    );
  });

/** `POST /v1/audit/holds` */
export const setHold = (request: Request, context: RequestContext): Promise<Response> => {
  const fresh = newId(Date.now());
  return inZones(
    request,
    context,
    { schema: holdBody },
    async ({ id = fresh, reason, basis, ...about }, one, claims) => {
      const subjects = await commitmentsIn(one, about, claims, context);
      const actor = await actorCommitment(one, claims, context);
      if (!subjects.ok || !actor.ok) return subjects.ok ? (actor as Result<never>) : subjects;
      const body = { id, reason, basis, ...(subjects.value && { subjects: subjects.value }), ...actor.value };
      return list(one, await callAuditFunctionsFor({ zone: one, path: `/${one}/holds`, body }, hold, claims, context));
    },
  );
};

/** `POST /v1/audit/holds/{id}/release` */
export const releaseHold = (request: Request, context: RequestContext, { name: id }: PathParams): Promise<Response> => {
  if (!newHold.shape.id.safeParse(id).success) return Promise.resolve(refuseWith(refuse('hold_unknown')));
  return inZones(
    request,
    context,
    { schema: holdReleaseBody, nothing: 'hold_unknown' },
    async ({ reason }, one, claims) => {
      const actor = await actorCommitment(one, claims, context);
      if (!actor.ok) return actor;
      const question = { zone: one, path: `/${one}/holds/${id}/release`, body: { reason, ...actor.value } };
      const done = await callAuditFunctionsFor(question, released, claims, context);
      // Another zone may have the hold.
      return !done.ok && done.refusal.reason === 'hold_unknown' ? ok([]) : list(one, done);
    },
  );
};

/** `GET /v1/audit/erasures`: pending erasures. */
export const listErasures = (request: Request, context: RequestContext): Promise<Response> =>
  inZones(request, context, { schema: undefined }, async (_, one, claims) => {
    const found = await callAuditFunctionsFor(
      { zone: one, path: `/${one}/erasures` },
      waitingErasures,
      claims,
      context,
    );
    return found.ok ? ok(found.value.data.map((row) => ({ zone: one, ...row }))) : found;
  });

/** `GET /v1/audit/holds` */
export const listHolds = (request: Request, context: RequestContext): Promise<Response> =>
  inZones(request, context, { schema: undefined }, async (_, one, claims) => {
    const found = await callAuditFunctionsFor({ zone: one, path: `/${one}/holds` }, holds, claims, context);
    return found.ok ? ok(found.value.data.map((row) => ({ zone: one, ...row }))) : found;
  });

const list = <T extends object>(one: string, answered: Result<T>): Result<object[]> =>
  answered.ok ? ok([{ zone: one, ...answered.value }]) : answered;

interface ZonedRoute<S> {
  /** Schema of the body; `undefined` of a GET. */
  readonly schema: S;
  /** Refusal when no zone has an answer. */
  readonly nothing?: 'hold_unknown';
}

type Body<S> = S extends z.ZodType ? z.infer<S> : { readonly zone?: string };

/**
 * Calls the zones in order. A refusal of one is the answer; a retry changes nothing where the call succeeded.
 */
async function inZones<S extends z.ZodType<{ zone?: string | undefined }> | undefined>(
  request: Request,
  context: RequestContext,
  { schema, nothing }: ZonedRoute<S>,
  send: (body: Body<S>, zone: string, claims: Claims) => Promise<Result<object[]>>,
): Promise<Response> {
  const scopes: Scope | readonly [Scope, ...Scope[]] = schema ? 'compliance' : ['compliance', 'audit'];
  const claims = await admit(request, scopes, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const body = await readBody(request, context, schema);
  if (!body.ok) return refuseWith(body.refusal);
  const zones = zonesOf(claims.value, body.value.zone, context);
  if (!zones.ok) return refuseWith(zones.refusal);
  const data: object[] = [];
  for (const one of zones.value) {
    const answered = await send(body.value as Body<S>, one, claims.value);
    if (!answered.ok) return refuseWith(answered.refusal);
    data.push(...answered.value);
  }
  if (nothing && data.length === 0) return refuseWith(refuse(nothing));
  return Response.json({ object: 'list', data }, { headers: { 'cache-control': 'no-store' } });
}

async function readBody(
  request: Request,
  context: RequestContext,
  schema: z.ZodType<{ zone?: string | undefined }> | undefined,
): Promise<Result<{ zone?: string | undefined }>> {
  if (!schema) return ok({ zone: new URL(request.url).searchParams.get('zone') ?? undefined });
  const json = await readJson(request, context);
  if (!json.ok) return json;
  const parsed = schema.safeParse(json.value);
  return parsed.success ? ok(parsed.data) : no(refuseField(parsed.error, json.value));
}
