import type { CallTask } from '../../../shared/kserve/call.ts';
import { refuse } from '../../../shared/refusal.ts';
import { requestedModel } from '../../../shared/registry/names.ts';
import { no, ok, type Result } from '../../../shared/result.ts';

/** A request below `/v2`. */
export type Question =
  | { readonly about: 'server' | 'live' | 'ready' }
  | {
      readonly about: 'model';
      readonly model: string;
      readonly version: string | undefined;
      readonly operation: CallTask | 'ready';
    };

type ModelQuestion = Extract<Question, { about: 'model' }>['operation'];

const servers: Readonly<Record<string, Extract<Question, { about: 'server' | 'live' | 'ready' }>['about']>> = {
  '/v2': 'server',
  '/v2/health/live': 'live',
  '/v2/health/ready': 'ready',
};

/** Last parts of a model's address, each with its method. */
const models: Readonly<Record<string, readonly [method: 'GET' | 'POST', operation: ModelQuestion]>> = {
  '': ['GET', 'metadata'],
  ready: ['GET', 'ready'],
  config: ['GET', 'config'],
  stats: ['GET', 'stats'],
  infer: ['POST', 'infer'],
  generate: ['POST', 'generate'],
  generate_stream: ['POST', 'generate_stream'],
};

/** Every address of this protocol with its method; what stands for a name is in braces, as OpenAPI writes it. */
export const kserveRoutes: readonly { readonly method: string; readonly path: string }[] = [
  ...Object.keys(servers).map((path) => ({ method: 'GET', path })),
  ...Object.entries(models).flatMap(([what, [method]]) =>
    ['/v2/models/{name}', '/v2/models/{name}/versions/{version}'].map((model) => ({
      method,
      path: what === '' ? model : `${model}/${what}`,
    })),
  ),
];

/**
 * Triton's other routes, which are closed. Loading takes files and configurations that run as code, shared memory is an address in the
 * engine's own machine, and the others change or show an engine that belongs to all tenants.
 */
const closed: readonly (readonly [RegExp, string])[] = [
  [/^\/v2\/repository(\/|$)/, 'model_repository'],
  [/^\/v2\/systemsharedmemory(\/|$)/, 'system_shared_memory'],
  [/^\/v2\/cudasharedmemory(\/|$)/, 'cuda_shared_memory'],
  [/^\/v2\/(models\/.*\/)?trace\/setting$/, 'trace'],
  [/^\/v2\/logging$/, 'logging'],
  [/^\/v2\/models\/stats$/, 'statistics of all models'],
];

const MODEL = /^\/v2\/models\/([^/]+)(?:\/versions\/([0-9]{1,15}))?(?:\/([a-z_]+))?$/;

/** Reads an address as Triton does. Refuses with route_unknown, method_wrong, model_unknown or extension_closed. */
export function readAddress(method: string, pathname: string): Result<Question> {
  const path = pathname.length > 1 ? pathname.replace(/\/$/, '') : pathname;
  const extension = closed.find(([pattern]) => pattern.test(path));
  if (extension) return no(refuse('extension_closed', { extension: extension[1] }));
  const about = Object.hasOwn(servers, path) ? servers[path] : undefined;
  if (about) return method === 'GET' ? ok({ about }) : no(refuse('method_wrong', { allow: 'GET' }));
  const [, name = '', version, what = ''] = MODEL.exec(path) ?? [];
  const row = Object.hasOwn(models, what) ? models[what] : undefined;
  if (name === '' || !row) return no(refuse('route_unknown'));
  const [allow, operation] = row;
  if (method !== allow) return no(refuse('method_wrong', { allow }));
  const model = decode(name);
  // A name that no model can have is not carried any further.
  if (!requestedModel.safeParse(model).success) return no(refuse('model_unknown', { model: model.slice(0, 63) }));
  return ok({ about: 'model', model, version, operation });
}

function decode(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
