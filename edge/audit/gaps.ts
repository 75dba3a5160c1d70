// Gaps of the audit log of a zone: lists them, and accepts one for an operator. The functions keep them.
import { z } from 'zod';
import { gap, gapList, newAcceptance } from '../../shared/audit/gaps.ts';
import { zoneName } from '../../shared/names.ts';
import { admit } from '../auth/admit.ts';
import type { RequestContext } from '../context.ts';
import { readJson } from '../http/json-body.ts';
import { refuseWith } from '../http/refuse.ts';
import { refuseField } from '../http/refuse-field.ts';
import { callAuditFunctionsFor } from './call-functions.ts';
import { zoneOf } from './exports.ts';
import { actorCommitment } from './request-actor.ts';

/** Body of `POST /v1/audit/gaps/accept`. */
export const acceptBody = z.strictObject({
  gap: newAcceptance.shape.gap,
  reason: newAcceptance.shape.reason.describe('Reason in words; public in the log'),
  zone: zoneName.optional().describe('Zone of the log; default: the home zone of the token'),
});

const inZone = { zone: z.string() };
export const acceptedGap = gap.extend(inZone);
export const listedGaps = z.object({ object: z.literal('list'), data: z.array(acceptedGap) });

const fresh = { 'cache-control': 'no-store' };

/** `GET /v1/audit/gaps?zone=` */
export async function listGaps(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, 'operate', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const zone = zoneOf(claims.value, new URL(request.url).searchParams.get('zone') ?? undefined, context);
  if (!zone.ok) return refuseWith(zone.refusal);
  const question = { zone: zone.value, path: `/${zone.value}/gaps`, operate: true };
  const found = await callAuditFunctionsFor(question, gapList, claims.value, context);
  if (!found.ok) return refuseWith(found.refusal);
  const data = found.value.data.map((one) => ({ zone: zone.value, ...one }));
  return Response.json({ object: 'list', data }, { headers: fresh });
}

/** `POST /v1/audit/gaps/accept` */
export async function acceptGap(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, 'operate', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const json = await readJson(request, context);
  if (!json.ok) return refuseWith(json.refusal);
  const parsed = acceptBody.safeParse(json.value);
  if (!parsed.success) return refuseWith(refuseField(parsed.error, json.value));
  const zone = zoneOf(claims.value, parsed.data.zone, context);
  if (!zone.ok) return refuseWith(zone.refusal);
  const actor = await actorCommitment(zone.value, claims.value, context);
  if (!actor.ok) return refuseWith(actor.refusal);
  const body = { gap: parsed.data.gap, reason: parsed.data.reason, ...actor.value };
  const question = { zone: zone.value, path: `/${zone.value}/gaps/accept`, body, operate: true };
  const done = await callAuditFunctionsFor(question, gap, claims.value, context);
  return done.ok ? Response.json({ zone: zone.value, ...done.value }, { headers: fresh }) : refuseWith(done.refusal);
}
