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
import type { Handler, RequestContext } from '../context.ts';
import { callFunctionsRoute, type Question } from '../functions/call-functions.ts';
import { readJson } from '../http/json-body.ts';
import { refuseWith } from '../http/refuse.ts';
import { refuseField } from '../http/refuse-field.ts';

/** A query parameter and its schema. */
type Parameter = readonly [name: string, value: z.ZodType];

export const moment = z.union(
  [z.string().regex(/^[0-9]{1,15}$/), z.iso.datetime({ offset: true }), z.iso.date()],
  'must be a time of ISO 8601, or milliseconds since 1970',
);
const at: Parameter = ['at', moment];
const after: Parameter = ['after', z.string().regex(/^[0-9]{1,9}$/, 'must be a whole number')];

/** Body of a move. It cannot be empty: no request removes an alias. */
export const aliasBody = aliasMove
  .refine(({ revision, from }) => revision !== undefined || from !== undefined, 'needs revision or from')
  .meta({ anyOf: [{ required: ['revision'] }, { required: ['from'] }] });

const revision = '/{name}/revisions/{revision}';

/** `GET /v1/models/{model}/revisions?at=`: stages and aliases, now or at a time. */
export const showRevisions = forward('GET', '/{name}', modelState, { passes: at });
/** `GET /v1/models/{model}/aliases?at=` */
export const showAliases = forward('GET', '/{name}', modelState, {
  passes: at,
  show: ({ aliases }) => Response.json({ object: 'list', data: aliases }),
});
/** `POST /v1/models/{model}/revisions`: registers a revision by the signature of its files. */
export const createRevision = forward('POST', '/{name}/revisions', revisionRow, {
  takes: newRevision,
  show: (row) => Response.json(row, { status: 201 }),
});
/** `GET /v1/models/{model}/revisions/{revision}`: one of them, with its signature. */
export const showRevision = forward('GET', revision, storedRevision);
/** `GET /v1/models/{model}/revisions/{revision}/evidence`: the evidence from live traffic. */
export const showEvidence = forward('GET', `${revision}/evidence`, liveEvidence);
/** `GET /v1/models/{model}/revisions/{revision}/files`: the files, and whether the store has them. */
export const showFiles = forward('GET', `${revision}/files`, fileList);
/** `POST /v1/models/{model}/revisions/{revision}/files`: lists the files and returns where to write missing ones. */
export const planFiles = forward('POST', `${revision}/files`, filePlan, { takes: newFiles });
/** `POST /v1/models/{model}/transitions`: 202 while it lacks signatures. */
export const createTransition = forward('POST', '/{name}/transitions', transitionRow, {
  takes: newTransition,
  show: (row) => Response.json(row, { status: row.missing > 0 ? 202 : 200 }),
});
/** `GET /v1/models/{model}/transitions?after=`: the log of the model, entry by entry. */
export const listTransitions = forward('GET', '/{name}/transitions', logPage, { passes: after });
/** `GET /v1/models/{model}/transitions/{id}` */
export const showTransition = forward('GET', '/{name}/transitions/{id}', storedTransition);
/** `GET /v1/models/{model}/tiers`: tiers of the files of each revision, and the decisions about them. */
export const showModelTiers = forward('GET', '/{name}/tiers', modelTiers);
/** `PUT /v1/models/{model}/aliases/{alias}`, from what it names now. */
export const moveAlias = forward('PUT', '/{name}/aliases/{alias}', aliasRow, { takes: aliasBody });

/** `GET /v1/tiers`: files and cost of each tier. */
export async function showTiers(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, 'operate', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  return answer(await callModelFunctions({ method: 'GET', path: '/tiers' }, storeTiers, claims.value.tenant, context));
}

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

function readQuery(request: Request, [field, value]: Parameter): Result<string> {
  const text = new URL(request.url).searchParams.get(field);
  if (text === null) return ok('');
  const parsed = value.safeParse(text);
  if (parsed.success) return ok(`?${new URLSearchParams({ [field]: text })}`);
  return no(refuse('field_invalid', { field, rule: parsed.error.issues[0]?.message ?? 'is not valid' }));
}

interface Forwarding<Value> {
  /** Query parameter to pass on. */
  readonly passes?: Parameter;
  /** Schema of the body to pass on. */
  readonly takes?: z.ZodType;
  readonly show?: (value: Value) => Response;
}

/** Makes a handler that authenticates an operator and passes the request to the functions. */
function forward<Row extends z.ZodType>(
  method: Question['method'],
  path: string,
  row: Row,
  { passes, takes, show }: Forwarding<z.infer<Row>> = {},
): Handler {
  return async (request, context, params) => {
    const claims = await admit(request, 'operate', context);
    if (!claims.ok) return refuseWith(claims.refusal);
    if (!isDecodable(new URL(request.url).pathname)) return refuseWith(refuse('route_unknown'));
    const query = passes ? readQuery(request, passes) : ok('');
    if (!query.ok) return refuseWith(query.refusal);
    const body = takes ? await readBody(request, context, takes) : ok(undefined);
    if (!body.ok) return refuseWith(body.refusal);
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encode(params[name]));
    const question = { method, path: `/models${filled}${query.value}`, body: body.value };
    return answer(await callModelFunctions(question, row, claims.value.tenant, context), show);
  };
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
