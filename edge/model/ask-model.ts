// Revisions of models, as operators ask for them: the functions keep them (shared/model/contract.ts), the edge says who asks.
import { z } from 'zod';
import { limits } from '../../shared/limits.ts';
import {
  aliasMove,
  aliasRow,
  keptRevision,
  keptTransition,
  liveEvidence,
  logPage,
  modelState,
  newRevision,
  newTransition,
  revisionRow,
  transitionRow,
} from '../../shared/model/contract.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { RequestContext } from '../context.ts';
import { readJson } from '../json-body.ts';
import { refuseWith } from '../refuse.ts';
import { refuseField } from '../refuse-field.ts';
import { admit } from '../tenant/admit.ts';
import { askBackOffice, type Question } from '../upload/back-office.ts';

/** `GET /v1/models/{model}/revisions?at=`: where each stands, and what the aliases name; now, or as it was. */
export const showRevisions = (request: Request, context: RequestContext, model: string): Promise<Response> =>
  ask(request, context, modelState, { method: 'GET', path: `/${encodeURIComponent(model)}`, passes: at });

/** `GET /v1/models/{model}/aliases?at=` */
export const showAliases = (request: Request, context: RequestContext, model: string): Promise<Response> =>
  ask(
    request,
    context,
    modelState,
    { method: 'GET', path: `/${encodeURIComponent(model)}`, passes: at },
    ({ aliases }) => Response.json({ object: 'list', data: aliases }),
  );

/** `POST /v1/models/{model}/revisions`: a signature of files makes a revision known. */
export const createRevision = (request: Request, context: RequestContext, model: string): Promise<Response> =>
  ask(
    request,
    context,
    revisionRow,
    { method: 'POST', path: `/${encodeURIComponent(model)}/revisions`, takes: newRevision },
    (row) => Response.json(row, { status: 201 }),
  );

/** `GET /v1/models/{model}/revisions/{revision}`: one of them, with its signature. */
export const showRevision = (request: Request, context: RequestContext, model: string): Promise<Response> =>
  ask(request, context, keptRevision, {
    method: 'GET',
    path: `/${encodeURIComponent(model)}/revisions/${lastPart(request)}`,
  });

/** `GET /v1/models/{model}/revisions/{revision}/evidence`: what live traffic says of it. */
export const showEvidence = (request: Request, context: RequestContext, model: string): Promise<Response> =>
  ask(request, context, liveEvidence, {
    method: 'GET',
    path: `/${encodeURIComponent(model)}/revisions/${partBefore(request)}/evidence`,
  });

/** `POST /v1/models/{model}/transitions`: 202 while somebody else must sign the same. */
export const createTransition = (request: Request, context: RequestContext, model: string): Promise<Response> =>
  ask(
    request,
    context,
    transitionRow,
    { method: 'POST', path: `/${encodeURIComponent(model)}/transitions`, takes: newTransition },
    (row) => Response.json(row, { status: row.missing > 0 ? 202 : 200 }),
  );

/** `GET /v1/models/{model}/transitions?after=`: the log of the model, entry by entry. */
export const listTransitions = (request: Request, context: RequestContext, model: string): Promise<Response> =>
  ask(request, context, logPage, { method: 'GET', path: `/${encodeURIComponent(model)}/transitions`, passes: after });

/** `GET /v1/models/{model}/transitions/{id}` */
export const showTransition = (request: Request, context: RequestContext, model: string): Promise<Response> =>
  ask(request, context, keptTransition, {
    method: 'GET',
    path: `/${encodeURIComponent(model)}/transitions/${lastPart(request)}`,
  });

/** Body of a move. An empty one is no request to take an alias away. */
export const aliasBody = aliasMove
  .refine(({ revision, from }) => revision !== undefined || from !== undefined, 'needs revision or from')
  .meta({ anyOf: [{ required: ['revision'] }, { required: ['from'] }] });

/** `PUT /v1/models/{model}/aliases/{alias}`, from what it names now. */
export const moveAlias = (request: Request, context: RequestContext, model: string): Promise<Response> =>
  ask(request, context, aliasRow, {
    method: 'PUT',
    path: `/${encodeURIComponent(model)}/aliases/${lastPart(request)}`,
    takes: aliasBody,
  });

/** As it stands in the address, encoded. */
const lastPart = (request: Request): string => new URL(request.url).pathname.split('/').at(-1) ?? '';

const partBefore = (request: Request): string => new URL(request.url).pathname.split('/').at(-2) ?? '';

/** Reports whether percent signs in an address encode UTF-8. The functions have no route for any other. */
function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

/** A parameter of the query, and what its value must be like. */
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

interface Asked extends Pick<Question, 'method' | 'path'> {
  /** What of the query is asked with. */
  readonly passes?: Parameter;
  /** What the body must be like; it is asked with. */
  readonly takes?: z.ZodType;
}

async function ask<Row extends z.ZodType>(
  request: Request,
  context: RequestContext,
  row: Row,
  { takes, passes, path, ...asked }: Asked,
  show?: (value: z.infer<Row>) => Response,
): Promise<Response> {
  const claims = await admit(request, 'operate', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  if (!isDecodable(path)) return refuseWith(refuse('route_unknown'));
  const query = passes ? readQuery(request, passes) : ok('');
  if (!query.ok) return refuseWith(query.refusal);
  const body = takes ? await readBody(request, context, takes) : ok(undefined);
  if (!body.ok) return refuseWith(body.refusal);
  const question = { ...asked, path: `${path}${query.value}`, body: body.value };
  return answer(await askModels(question, row, claims.value.tenant, context), show);
}

async function readBody(request: Request, context: RequestContext, body: z.ZodType): Promise<Result<unknown>> {
  const json = await readJson(request, context, limits.modelBodyBytes.value);
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

/** Models are of the whole fleet: the functions of the first zone that has any keep them for all. */
export async function askModels<Row extends z.ZodType>(
  { path, ...asked }: Pick<Question, 'method' | 'path' | 'body'>,
  row: Row,
  tenant: string,
  context: RequestContext,
): Promise<Result<z.infer<Row>>> {
  const { zones, backOffices } = context.settings;
  const zone = zones.find((one) => backOffices.has(one));
  if (zone === undefined) return no(refuse('models_closed'));
  const found = await askBackOffice({ ...asked, zone, path: `/models${path}`, operate: true }, row, tenant, context);
  if (found.ok) {
    const { value } = found;
    return value === undefined ? no(refuse('models_unavailable', undefined, 'they answered nothing')) : ok(value);
  }
  const { reason, detail, retryAfter } = found.refusal;
  if (reason !== 'uploads_unavailable') return found;
  return no({ ...refuse('models_unavailable', undefined, detail), ...(retryAfter !== undefined && { retryAfter }) });
}
