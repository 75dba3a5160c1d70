// The versions of TorchServe's management API, for operators' scripts and tools. A revision is a version, numbered in the
// order of registration; the default version is the one that `stable` names.
import type { z } from 'zod';
import { refuse } from '../../shared/refusal.ts';
import { aliasRow, type ModelState, modelNames, modelState, transitionRow } from '../../shared/registry/contract.ts';
import { STABLE } from '../../shared/registry/registry.ts';
import { findVersion, type Version, versionsOf } from '../../shared/registry/version.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { admit } from '../auth/admit.ts';
import type { PathParams, RequestContext } from '../context.ts';
import { refuseThrown } from '../http/refuse-thrown.ts';
import { describeVersion, type listedVersions, refuseAsTorchserve, type statusAnswer } from '../protocol/torchserve.ts';
import { readModelNames } from '../routing/model-names.ts';
import { readSnapshots } from '../routing/snapshot.ts';
import { callModelFunctions } from './model-routes.ts';

/** Models of one answer in TorchServe's shape: its own default and maximum. */
const LISTED_VERSIONS_MAX = 100;

/** `GET …/models?limit=&next_page_token=` */
export const listVersions = (request: Request, context: RequestContext): Promise<Response> =>
  byOperator(request, context, async (tenant) => {
    const found = await callModelFunctions({ method: 'GET', path: '/models' }, modelNames, tenant, context);
    if (!found.ok) return found;
    const query = new URL(request.url).searchParams;
    const from = readNumber(query.get('next_page_token')) ?? 0;
    const most = Math.min(readNumber(query.get('limit')) ?? Infinity, LISTED_VERSIONS_MAX);
    const all = found.value.models;
    const models = all
      .slice(from, from + most)
      .map(({ model, stable = '' }) => ({ modelName: model, modelUrl: stable }));
    const next = from + models.length;
    const page: z.infer<typeof listedVersions> = { models, ...(next < all.length && { nextPageToken: String(next) }) };
    return ok(page);
  });

/** Reads a number; any other text counts as absent, as in TorchServe. */
const readNumber = (text: string | null): number | undefined =>
  text !== null && /^\d{1,9}$/.test(text) ? Number(text) : undefined;

/** `GET …/models/{model}`: the default version. */
export const describeDefault = (request: Request, context: RequestContext, params: PathParams): Promise<Response> =>
  ofModel(request, context, params, async (state) => {
    const stable = state.aliases.find(({ alias }) => alias === STABLE)?.revision;
    const found = stable === undefined ? undefined : findVersion(state, stable);
    return found ? ok(await describe(state, [found], context)) : unknownVersion(state);
  });

/** `GET …/models/{model}/{version}`, or `all` of them. */
export const describeVersions = (request: Request, context: RequestContext, params: PathParams): Promise<Response> =>
  ofModel(request, context, params, async (state) => {
    const { version = '' } = params;
    const found =
      version === 'all' ? versionsOf(state) : [findVersion(state, version)].filter((one) => one !== undefined);
    return found.length > 0 ? ok(await describe(state, found, context)) : unknownVersion(state);
  });

/** `PUT …/models/{model}/{version}/set-default`: moves `stable`. */
export const setDefaultVersion = (request: Request, context: RequestContext, params: PathParams): Promise<Response> =>
  ofModel(request, context, params, async (state, tenant) => {
    const found = findVersion(state, params.version ?? '');
    if (!found) return unknownVersion(state);
    const from = state.aliases.find(({ alias }) => alias === STABLE)?.revision;
    const body = { revision: found.row.revision, ...(from !== undefined && { from }) };
    const path = `/models/${encodeURIComponent(state.model)}/aliases/${STABLE}`;
    const moved = await callModelFunctions({ method: 'PUT', path, body }, aliasRow, tenant, context);
    return moved.ok ? ok(statusOf(`Default version of model "${state.model}" is now "${found.version}"`)) : moved;
  });

/** `DELETE …/models/{model}/{version}`: retires the revision. */
export const retireVersion = (request: Request, context: RequestContext, params: PathParams): Promise<Response> =>
  ofModel(request, context, params, async (state, tenant) => {
    const found = findVersion(state, params.version ?? '');
    if (!found) return unknownVersion(state);
    const path = `/models/${encodeURIComponent(state.model)}/revisions/${encodeURIComponent(found.row.revision)}`;
    const retired = await callModelFunctions({ method: 'DELETE', path }, transitionRow, tenant, context);
    return retired.ok ? ok(statusOf(`Model "${state.model}" version "${found.version}" unregistered`)) : retired;
  });

const statusOf = (status: string): z.infer<typeof statusAnswer> => ({ status });

const unknownVersion = ({ model }: ModelState) => no(refuse('revision_unknown', { model }));

async function describe(state: ModelState, versions: readonly Version[], { settings, env, runtime }: RequestContext) {
  const snapshots = await readSnapshots(settings.zones, env.ROSTER, runtime);
  return versions.map((one) => describeVersion(state, one, snapshots));
}

const ofModel = (
  request: Request,
  context: RequestContext,
  { name }: PathParams,
  then: (state: ModelState, tenant: string) => Promise<Result<object>>,
): Promise<Response> =>
  byOperator(request, context, async (tenant) => {
    const model = (await readModelNames({ tenant }, context))(name) ?? name;
    const path = `/models/${encodeURIComponent(model)}`;
    const found = await callModelFunctions({ method: 'GET', path }, modelState, tenant, context);
    if (!found.ok) return found;
    const { value } = found;
    return value.revisions.length > 0
      ? then(value, tenant)
      : no(refuse('model_unknown', { model: model.slice(0, 63) }));
  });

/** Authenticates an operator, and answers refusals in TorchServe's shape. */
async function byOperator(
  request: Request,
  context: RequestContext,
  then: (tenant: string) => Promise<Result<object>>,
): Promise<Response> {
  try {
    const claims = await admit(request, 'operate', context);
    if (!claims.ok) return refuseAsTorchserve(claims.refusal);
    const found = await then(claims.value.tenant);
    if (!found.ok) return refuseAsTorchserve(found.refusal);
    return Response.json(found.value, { headers: { 'cache-control': 'no-store' } });
  } catch (error) {
    return refuseAsTorchserve(refuseThrown(context.id, error));
  }
}
