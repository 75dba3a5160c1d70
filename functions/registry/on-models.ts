// Endpoints of the edge for operators' model requests (shared/registry/contract.ts).
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import { refuse } from '../../shared/refusal.ts';
import { aliasMove, nameMove, newRevision, newTransition } from '../../shared/registry/contract.ts';
import { aliasName } from '../../shared/registry/registry.ts';
import { modelName, revisionDigest } from '../../shared/registry/revision.ts';
import type { EdgeCaller } from '../caller/edge-caller.ts';
import { type EdgeHandler, fromEdge } from '../caller/from-edge.ts';
import { answer, answerNo, answerResult, answerUnlike } from '../http/answer.ts';
import { readCount } from '../http/read-count.ts';
import { readJson } from '../http/read-json.ts';
import { getLiveEvidence } from './get-live.ts';
import { getModel } from './get-model.ts';
import { MODEL_LOG_ROWS_MAX } from './limits.ts';
import { type ModelContext, requireModels } from './model-context.ts';
import { moveAlias } from './move-alias.ts';
import { getTransition, moveRevision } from './move-revision.ts';
import { listModels } from './publish-release.ts';
import { getRevision, registerRevision } from './register-revision.ts';
import { retireRevision } from './retire-revision.ts';
import { listNames, setName } from './set-name.ts';
import { readEntries } from './stored-model.ts';

const unlike = (field: string, rule = 'it is not as agreed') => answerNo(refuse('field_invalid', { field, rule }));

/** POST /api/models/{model}/revisions */
export const onRevision = (context: ModelContext | undefined): EdgeHandler =>
  ofModel(context, async (known, model, request) => {
    const body = newRevision.safeParse(await readJson(request));
    if (!body.success) return answerUnlike(body.error);
    return answerResult(await registerRevision(known, model, body.data), 201);
  });

/** GET /api/models/{model}/revisions/{revision} */
export const onSeeRevision = (context: ModelContext | undefined): EdgeHandler =>
  ofRevision(context, async (known, model, revision) => answerResult(await getRevision(known, model, revision)));

/** DELETE /api/models/{model}/revisions/{revision} */
export const onRetire = (context: ModelContext | undefined): EdgeHandler =>
  ofRevision(context, async (known, model, revision, { caller }) =>
    answerResult(await retireRevision(known, model, revision, caller.tenant)),
  );

/** GET /api/models */
export const onModels = (context: ModelContext | undefined): EdgeHandler =>
  byOperator(context, async (known) => answer(200, { models: await listModels(known) }));

/** GET /api/models/{model}/revisions/{revision}/evidence */
export const onEvidence = (context: ModelContext | undefined): EdgeHandler =>
  ofRevision(context, async (known, model, revision) => answerResult(await getLiveEvidence(known, model, revision)));

/** GET /api/models/{model}?at= */
export const onModel = (context: ModelContext | undefined): EdgeHandler =>
  ofModel(context, async (known, model, request) => {
    const text = request.query.get('at');
    const at = text === null ? undefined : readTime(text);
    if (text !== null && at === undefined) return unlike('at', 'it is no time');
    return answer(200, await getModel(known, model, at));
  });

/** Parses milliseconds since 1970 or ISO 8601. */
const readTime = (text: string): number | undefined => {
  const at = /^\d{1,15}$/.test(text) ? Number(text) : Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
};

/** POST /api/models/{model}/transitions */
export const onTransition = (context: ModelContext | undefined): EdgeHandler =>
  ofModel(context, async (known, model, request) => {
    const body = newTransition.safeParse(await readJson(request));
    if (!body.success) return answerUnlike(body.error);
    const moved = await moveRevision(known, model, body.data.envelope);
    return answerResult(moved, moved.ok && moved.value.missing > 0 ? 202 : 200);
  });

/** GET /api/models/{model}/transitions?after= */
export const onLog = (context: ModelContext | undefined): EdgeHandler =>
  ofModel(context, async (known, model, request) => {
    const most = MODEL_LOG_ROWS_MAX;
    const entries = await readEntries(known, model, readCount(request, 'after') ?? 0, most);
    const next = entries.length === most && entries.at(-1)?.seq;
    return answer(200, { entries, ...(next && { next }) });
  });

/** GET /api/models/{model}/transitions/{id} */
export const onSeeTransition = (context: ModelContext | undefined): EdgeHandler =>
  ofModel(context, async (known, model, request) => {
    const { id = '' } = request.params;
    if (!/^[0-9a-f]{64}$/.test(id)) return answerNo(refuse('transition_unknown'));
    return answerResult(await getTransition(known, model, id));
  });

/** PUT /api/models/{model}/aliases/{alias} */
export const onAlias = (context: ModelContext | undefined): EdgeHandler =>
  ofModel(context, async (known, model, request) => {
    const alias = aliasName.safeParse(request.params.alias);
    if (!alias.success) return unlike('alias');
    const body = aliasMove.safeParse(await readJson(request));
    if (!body.success) return answerUnlike(body.error);
    return answerResult(await moveAlias(known, model, { alias: alias.data, ...body.data }));
  });

/** GET /api/names */
export const onNames = (context: ModelContext | undefined): EdgeHandler =>
  byOperator(context, async (known) => answer(200, { names: await listNames(known) }));

/** POST /api/names */
export const onSetName = (context: ModelContext | undefined): EdgeHandler =>
  byOperator(context, async (known, request) => {
    const body = nameMove.safeParse(await readJson(request));
    return body.success ? answerResult(await setName(known, body.data)) : answerUnlike(body.error);
  });

export function ofModel(
  context: ModelContext | undefined,
  then: (context: ModelContext, model: string, request: HttpRequest, caller: EdgeCaller) => Promise<HttpResponseInit>,
): EdgeHandler {
  return byOperator(context, async (known, request, caller) => {
    const model = modelName.safeParse(request.params.model);
    return model.success ? then(known, model.data, request, caller) : unlike('model');
  });
}

/** Answers `revision_unknown` for anything that is not a digest. */
export const ofRevision = (
  context: ModelContext | undefined,
  then: (
    context: ModelContext,
    model: string,
    revision: string,
    call: { readonly request: HttpRequest; readonly caller: EdgeCaller },
  ) => Promise<HttpResponseInit>,
): EdgeHandler =>
  ofModel(context, async (known, model, request, caller) => {
    const revision = revisionDigest.safeParse(request.params.revision);
    return revision.success
      ? then(known, model, revision.data, { request, caller })
      : answerNo(refuse('revision_unknown', { model }));
  });

export const byOperator = (
  context: ModelContext | undefined,
  then: (context: ModelContext, request: HttpRequest, caller: EdgeCaller) => Promise<HttpResponseInit>,
): EdgeHandler =>
  fromEdge(requireModels(context), async (request, caller, known) =>
    caller.operate ? then(known, request, caller) : answerNo(refuse('scope_missing', { scope: 'operate' })),
  );
