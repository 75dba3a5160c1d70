// HTTP requests of the edge about erasures and holds: `shared/audit/privacy.ts`.
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import type { z } from 'zod';
import { newErasure, newHold, newRelease } from '../../../shared/audit/privacy.ts';
import { refuse } from '../../../shared/refusal.ts';
import type { EdgeCaller } from '../../caller/edge-caller.ts';
import type { EdgeHandler } from '../../caller/from-edge.ts';
import { answer, answerNo } from '../../http/answer.ts';
import { readJson } from '../../http/read-json.ts';
import { verified } from '../context/verified.ts';
import { eraseSubjects, listErasures } from './erase.ts';
import { listHolds, releaseHold, setHold } from './hold.ts';
import type { HoldState } from './hold-state.ts';
import type { PrivacyContext, ZoneContext } from './open-privacy.ts';

/** POST /api/audit/{zone}/erasures */
export const onErase = (context: PrivacyContext | undefined): EdgeHandler =>
  forZone(context, newErasure, async ({ subjects, ...rest }, { tenant }, zone) => {
    const done = await eraseSubjects(zone, subjects, { ...rest, tenant });
    return done.ok ? answer(200, done.value) : answerNo(done.refusal);
  });

/** GET /api/audit/{zone}/erasures */
export const onErasures = (context: PrivacyContext | undefined): EdgeHandler =>
  forZone(context, undefined, async (_, { tenant, subject }, zone) => {
    const noted = await context?.reads.note({ zone: zone.zone, tenant, subject, action: 'erasures' });
    if (noted?.ok === false) return answerNo(noted.refusal);
    const waiting = await listErasures(zone, tenant);
    const data = waiting.map(({ subject, basis, at, deferred }) => ({ subject, basis, at, deferred }));
    return answer(200, { data });
  });

/** POST /api/audit/{zone}/holds */
export const onHold = (context: PrivacyContext | undefined): EdgeHandler =>
  forZone(context, newHold, async ({ subjects = [], ...rest }, { tenant }, zone) => {
    const [subject, ...also] = subjects;
    const set = await setHold(zone, { ...rest, tenant, subject, also });
    return set.ok ? answer(200, holdRow(set.value)) : answerNo(set.refusal);
  });

/** GET /api/audit/{zone}/holds */
export const onHolds = (context: PrivacyContext | undefined): EdgeHandler =>
  forZone(context, undefined, async (_, { tenant, subject }, zone) => {
    const noted = await context?.reads.note({ zone: zone.zone, tenant, subject, action: 'holds' });
    if (noted?.ok === false) return answerNo(noted.refusal);
    return answer(200, { data: (await listHolds(zone, tenant)).map(holdRow) });
  });

/** POST /api/audit/{zone}/holds/{id}/release */
export const onRelease = (context: PrivacyContext | undefined): EdgeHandler =>
  forZone(context, newRelease, async (body, { tenant }, zone, { id = '' }) => {
    const done = await releaseHold(zone, tenant, id, body);
    return done.ok ? answer(200, { id }) : answerNo(done.refusal);
  });

const holdRow = ({ id, subject, reason, basis, at }: HoldState) => ({
  ...{ id, scope: subject === undefined ? 'tenant' : 'subject', subject, reason, basis, at },
});

/** About the tenant of the question only, in a zone that is served, with a body of that shape. */
export function forZone<S extends z.ZodType | undefined>(
  context: PrivacyContext | undefined,
  schema: S,
  then: (
    body: S extends z.ZodType ? z.infer<S> : undefined,
    caller: EdgeCaller,
    zone: ZoneContext,
    params: HttpRequest['params'],
  ) => Promise<HttpResponseInit>,
): EdgeHandler {
  return verified(context?.log, async (request, caller) => {
    const { zone = '' } = request.params;
    const found = context?.zone(zone);
    if (!found) return answerNo(refuse('zone_unserved', { zone }));
    const body = schema?.safeParse(await readJson(request));
    if (body && !body.success) return answerNo(refuse('field_invalid', { field: 'body', rule: 'it is not as agreed' }));
    return then(body?.data as never, caller, found, request.params);
  });
}
