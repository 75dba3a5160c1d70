// Routes for operators to the names of models. The functions store them; a name is for a model that agents serve.
import type { z } from 'zod';
import { refuse } from '../../shared/refusal.ts';
import { nameList, nameMove, nameRow } from '../../shared/registry/contract.ts';
import { MODEL_BODY_BYTES } from '../../shared/registry/limits.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { admit } from '../auth/admit.ts';
import type { RequestContext } from '../context.ts';
import { readJson } from '../http/json-body.ts';
import { refuseWith } from '../http/refuse.ts';
import { refuseField } from '../http/refuse-field.ts';
import { readSnapshots } from '../routing/snapshot.ts';
import { listFamilies } from './list-models.ts';
import { callModelFunctions } from './model-routes.ts';

const uncached = { headers: { 'cache-control': 'no-store' } };

/** Body of a move. It cannot be empty: no request removes an absent name. */
export const nameBody = nameMove
  .refine(({ model, from }) => model !== undefined || from !== undefined, 'needs model or from')
  .meta({ anyOf: [{ required: ['model'] }, { required: ['from'] }] });

/** `GET /v1/names` */
export async function listNames(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, 'operate', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const found = await callModelFunctions({ method: 'GET', path: '/names' }, nameList, claims.value.tenant, context);
  return found.ok ? Response.json({ object: 'list', data: found.value.names }, uncached) : refuseWith(found.refusal);
}

/** `POST /v1/names`: gives a name to another model, or removes it. */
export async function setName(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, 'operate', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const body = await readMove(request, context);
  if (!body.ok) return refuseWith(body.refusal);
  const question = { method: 'POST', path: '/names', body: body.value } as const;
  const found = await callModelFunctions(question, nameRow, claims.value.tenant, context);
  return found.ok ? Response.json(found.value, uncached) : refuseWith(found.refusal);
}

async function readMove(request: Request, context: RequestContext): Promise<Result<z.infer<typeof nameMove>>> {
  const json = await readJson(request, context, MODEL_BODY_BYTES);
  if (!json.ok) return json;
  const parsed = nameBody.safeParse(json.value);
  if (!parsed.success) return no(refuseField(parsed.error, json.value));
  const { model } = parsed.data;
  if (model === undefined) return ok(parsed.data);
  const { settings, env, runtime } = context;
  const served = listFamilies(await readSnapshots(settings.zones, env.ROSTER, runtime));
  return served.some(({ id }) => id === model) ? ok(parsed.data) : no(refuse('model_unknown', { model }));
}
