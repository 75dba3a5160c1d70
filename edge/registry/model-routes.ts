// Routes for operators to the revisions of models. The functions store them (shared/registry/contract.ts); the edge
// authenticates.
import { z } from 'zod';
import { refuse } from '../../shared/refusal.ts';
import {
  aliasMove,
  aliasRow,
  liveEvidence,
  logPage,
  modelState,
  newRevision,
  newTransition,
  revisionRow,
  storedRevision,
  storedTransition,
  transitionRow,
} from '../../shared/registry/contract.ts';
import { MODEL_BODY_BYTES } from '../../shared/registry/limits.ts';
import { fileList, filePlan, newFiles } from '../../shared/registry/model-files.ts';
import { modelTiers, storeTiers } from '../../shared/registry/tiers.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { admit } from '../auth/admit.ts';
import type { PathParams, RequestContext } from '../context.ts';
import { callFunctionsRoute, type Question } from '../functions/call-functions.ts';
import { readJson } from '../http/json-body.ts';
import { refuseWith } from '../http/refuse.ts';
import { refuseField } from '../http/refuse-field.ts';

/** `GET /v1/models/{model}/revisions?at=`: stages and aliases, now or at a time. */
export const showRevisions = (request: Request, context: RequestContext, { name }: PathParams): Promise<Response> =>
  forward(request, context, modelState, { method: 'GET', path: `/${encode(name)}`, passes: at });

/** `GET /v1/models/{model}/aliases?at=` */
export const showAliases = (request: Request, context: RequestContext, { name }: PathParams): Promise<Response> =>
  call(request, context, modelState, { method: 'GET', path: `/${encode(name)}`, passes: at }).then((found) =>
    answer(found, ({ aliases }) => Response.json({ object: 'list', data: aliases })),
  );

/** `POST /v1/models/{model}/revisions`: registers a revision by the signature of its files. */
export const createRevision = (request: Request, context: RequestContext, { name }: PathParams): Promise<Response> =>
  call(request, context, revisionRow, {
    method: 'POST',
    path: `/${encode(name)}/revisions`,
    takes: newRevision,
  }).then((found) => answer(found, (row) => Response.json(row, { status: 201 })));

/** `GET /v1/models/{model}/revisions/{revision}`: one of them, with its signature. */
export const showRevision = (
  request: Request,
  context: RequestContext,
  { name, revision }: PathParams,
): Promise<Response> =>
  forward(request, context, storedRevision, {
    method: 'GET',
    path: `/${encode(name)}/revisions/${encode(revision)}`,
  });

/** `GET /v1/models/{model}/revisions/{revision}/evidence`: the evidence from live traffic. */
export const showEvidence = (
  request: Request,
  context: RequestContext,
  { name, revision }: PathParams,
): Promise<Response> =>
  forward(request, context, liveEvidence, {
    method: 'GET',
    path: `/${encode(name)}/revisions/${encode(revision)}/evidence`,
  });

/** `GET /v1/models/{model}/revisions/{revision}/files`: the files, and whether the store has them. */
export const showFiles = (
  request: Request,
  context: RequestContext,
  { name, revision }: PathParams,
): Promise<Response> =>
  forward(request, context, fileList, {
    method: 'GET',
    path: `/${encode(name)}/revisions/${encode(revision)}/files`,
  });

/** `POST /v1/models/{model}/revisions/{revision}/files`: lists the files and returns where to write missing ones. */
export const planFiles = (
  request: Request,
  context: RequestContext,
  { name, revision }: PathParams,
): Promise<Response> =>
  forward(request, context, filePlan, {
    method: 'POST',
    path: `/${encode(name)}/revisions/${encode(revision)}/files`,
    takes: newFiles,
  });

/** `POST /v1/models/{model}/transitions`: 202 while it lacks signatures. */
export const createTransition = (request: Request, context: RequestContext, { name }: PathParams): Promise<Response> =>
  call(request, context, transitionRow, {
    method: 'POST',
    path: `/${encode(name)}/transitions`,
    takes: newTransition,
  }).then((found) => answer(found, (row) => Response.json(row, { status: row.missing > 0 ? 202 : 200 })));

/** `GET /v1/models/{model}/transitions?after=`: the log of the model, entry by entry. */
export const listTransitions = (request: Request, context: RequestContext, { name }: PathParams): Promise<Response> =>
  forward(request, context, logPage, { method: 'GET', path: `/${encode(name)}/transitions`, passes: after });

/** `GET /v1/models/{model}/transitions/{id}` */
export const showTransition = (
  request: Request,
  context: RequestContext,
  { name, id }: PathParams,
): Promise<Response> =>
  forward(request, context, storedTransition, {
    method: 'GET',
    path: `/${encode(name)}/transitions/${encode(id)}`,
  });

/** `GET /v1/models/{model}/tiers`: tiers of the files of each revision, and the decisions about them. */
export const showModelTiers = (request: Request, context: RequestContext, { name }: PathParams): Promise<Response> =>
  forward(request, context, modelTiers, { method: 'GET', path: `/${encode(name)}/tiers` });

/** `GET /v1/tiers`: files and cost of each tier. */
export async function showTiers(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, 'operate', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  return answer(await callModelFunctions({ method: 'GET', path: '/tiers' }, storeTiers, claims.value.tenant, context));
}

/** Body of a move. It cannot be empty: no request removes an alias. */
export const aliasBody = aliasMove
  .refine(({ revision, from }) => revision !== undefined || from !== undefined, 'needs revision or from')
  .meta({ anyOf: [{ required: ['revision'] }, { required: ['from'] }] });

/** `PUT /v1/models/{model}/aliases/{alias}`, from what it names now. */
export const moveAlias = (request: Request, context: RequestContext, { name, alias }: PathParams): Promise<Response> =>
  forward(request, context, aliasRow, {
    method: 'PUT',
    path: `/${encode(name)}/aliases/${encode(alias)}`,
    takes: aliasBody,
  });

/** Encodes a segment of a path; the colon of a digest stays (RFC 3986 §3.3). */
const encode = (part = ''): string => encodeURIComponent(part).replaceAll('%3A', ':');

/** Reports whether percent signs in a path encode UTF-8. The functions have no route for any other. */
function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

/** A query parameter and its schema. */
type Parameter = readonly [name: string, value: z.ZodType];

export const moment = z.union(
  [z.string().regex(/^[0-9]{1,15}$/), z.iso.datetime({ offset: true }), z.iso.date()],
  'must be a time of ISO 8601, or milliseconds since 1970',
);
const at: Parameter = ['at', moment];
const after: Parameter = ['after', z.string().regex(/^[0-9]{1,9}$/, 'must be a whole number')];

function readQuery(request: Request, [field, value]: Parameter): Result<string> {
  const text = new URL(request.url).searchParams.get(field);
  if (text === null) return ok('');
  const parsed = value.safeParse(text);
  if (parsed.success) return ok(`?${new URLSearchParams({ [field]: text })}`);
  return no(refuse('field_invalid', { field, rule: parsed.error.issues[0]?.message ?? 'is not valid' }));
}

interface ForwardedCall extends Pick<Question, 'method' | 'path'> {
  /** Query parameter to pass on. */
  readonly passes?: Parameter;
  /** Schema of the body to pass on. */
  readonly takes?: z.ZodType;
}

async function forward<Row extends z.ZodType>(
  request: Request,
  context: RequestContext,
  row: Row,
  params: ForwardedCall,
): Promise<Response> {
  return answer(await call(request, context, row, params));
}

/** Authenticates an operator and passes the request to the functions. */
async function call<Row extends z.ZodType>(
  request: Request,
  context: RequestContext,
  row: Row,
  { takes, passes, path, ...rest }: ForwardedCall,
): Promise<Result<z.infer<Row>>> {
  const claims = await admit(request, 'operate', context);
  if (!claims.ok) return claims;
  if (!isDecodable(new URL(request.url).pathname)) return no(refuse('route_unknown'));
  const query = passes ? readQuery(request, passes) : ok('');
  if (!query.ok) return query;
  const body = takes ? await readBody(request, context, takes) : ok(undefined);
  if (!body.ok) return body;
  const question = { ...rest, path: `/models${path}${query.value}`, body: body.value };
  return callModelFunctions(question, row, claims.value.tenant, context);
}

async function readBody(request: Request, context: RequestContext, body: z.ZodType): Promise<Result<unknown>> {
  const json = await readJson(request, context, MODEL_BODY_BYTES);
  if (!json.ok) return json;
  const parsed = body.safeParse(json.value);
  return parsed.success ? ok(parsed.data) : no(refuseField(parsed.error, json.value));
}

function answer<T>(found: Result<T>, show: (value: T) => Response = (value) => Response.json(value)): Response {
  if (!found.ok) return refuseWith(found.refusal);
  const response = show(found.value);
  response.headers.set('cache-control', 'no-store');
  return response;
}

/** Calls the functions that store models: those of the first zone with functions, for the whole fleet. */
export async function callModelFunctions<Row extends z.ZodType>(
  question: Pick<Question, 'method' | 'path' | 'body'>,
  row: Row,
  tenant: string,
  context: RequestContext,
): Promise<Result<z.infer<Row>>> {
  const { zones, functionsUrls } = context.settings;
  const zone = zones.find((one) => functionsUrls.has(one));
  if (zone === undefined) return no(refuse('models_closed'));
  const found = await callFunctionsRoute({ ...question, zone, operate: true }, row, tenant, context);
  if (found.ok) {
    const { value } = found;
    return value === undefined ? no(refuse('models_unavailable', undefined, 'an empty answer')) : ok(value);
  }
  const { reason, detail, retryAfter } = found.refusal;
  if (reason !== 'uploads_unavailable') return found;
  return no({ ...refuse('models_unavailable', undefined, detail), ...(retryAfter !== undefined && { retryAfter }) });
}
