import type { z } from 'zod';
import { describe } from '../../../../shared/kserve/infer-request.ts';
import { indexRequest, loadRequest, unloadRequest } from '../../../../shared/kserve/repository.ts';
import type { MemoryUsage } from '../../../../shared/kserve/statistics.ts';
import { ok, type Result } from '../../../../shared/result.ts';
import type { Served } from '../model/served.ts';
import { type EngineRefusal, refuse } from '../refuse.ts';
import type { Repository } from '../repository/repository.ts';
import type { Answer } from './answer.ts';
import { empty, json, refused } from './answer.ts';
import type { EngineRequest } from './engine-request.ts';
import { generate } from './generate.ts';
import { infer } from './infer.ts';
import { modelMetadata, serverMetadata } from './metadata.ts';

type Act = (repository: Repository, request: EngineRequest) => Answer | Promise<Answer>;

interface Route {
  readonly method: 'GET' | 'POST';
  readonly path: RegExp;
  readonly act: Act;
}

const model = '/v2/models/(?<model>[^/]+)(?:/versions/(?<version>[0-9]{1,15}))?';
const at = (pattern: string): RegExp => new RegExp(`^${pattern}$`);

/** Runs `act` on the requested model. */
const onModel =
  (act: (served: Served, repository: Repository) => Answer): Act =>
  (repository, request) => {
    const served = repository.find(request.model, request.version);
    return served.ok ? act(served.value, repository) : refused(served.refusal);
  };

const memoryUsage = (bytes: number): MemoryUsage[] =>
  bytes > 0 ? [{ type: 'CPU', id: 0, byte_size: bytes, source: 'measured' }] : [];

const statistics = (served: readonly Served[]): Answer =>
  json({
    model_stats: served.map(({ statistics: known, name, version, memoryBytes }) => ({
      ...known.describe(name, version),
      memory_usage: memoryUsage(memoryBytes),
    })),
  });

/** Triton's routes (http_server.cc). Missing ones (shared memory, trace, logging) answer 404. */
export const routes: readonly Route[] = [
  { method: 'GET', path: at('/v2/?'), act: ({ retriesLoads }) => json(serverMetadata(retriesLoads)) },
  { method: 'GET', path: at('/v2/health/live'), act: () => empty(true) },
  { method: 'GET', path: at('/v2/health/ready'), act: (repository) => empty(repository.ready) },
  { method: 'GET', path: at('/v2/models/stats'), act: (repository) => statistics(repository.served) },
  { method: 'POST', path: at(`${model}/infer`), act: infer },
  { method: 'POST', path: at(`${model}/generate`), act: generate(false) },
  { method: 'POST', path: at(`${model}/generate_stream`), act: generate(true) },
  {
    method: 'GET',
    path: at(`${model}/ready`),
    act: (repository, { model: name, version }) => empty(repository.find(name, version).ok),
  },
  { method: 'GET', path: at(`${model}/stats`), act: onModel((served) => statistics([served])) },
  {
    method: 'GET',
    path: at(`${model}/config`),
    // `not_honoured` is an extension: configured features that this engine lacks.
    act: onModel((served, repository) => json({ ...served.config, not_honoured: repository.unhonoured(served.name) })),
  },
  {
    method: 'GET',
    path: at(model),
    act: onModel((served, repository) => json(modelMetadata(served, repository.served))),
  },
  { method: 'POST', path: at('/v2/repository/index'), act: index },
  { method: 'POST', path: at('/v2/repository/models/(?<model>[^/]+)/load'), act: load },
  { method: 'POST', path: at('/v2/repository/models/(?<model>[^/]+)/unload'), act: unload },
];

/** Parses JSON; an empty body means an empty object. */
function readJson<T>(body: Uint8Array, schema: z.ZodType<T>): Result<T, EngineRefusal> {
  let value: unknown = {};
  try {
    if (body.byteLength > 0) value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return refuse('INVALID_ARG', 'failed to parse the request JSON');
  }
  const parsed = schema.safeParse(value);
  return parsed.success ? ok(parsed.data) : refuse('INVALID_ARG', `invalid request: ${describe(parsed.error)}`);
}

async function index(repository: Repository, { body }: EngineRequest): Promise<Answer> {
  const parsed = readJson(body, indexRequest);
  return parsed.ok ? json(await repository.index(parsed.value.ready ?? false)) : refused(parsed.refusal);
}

async function load(repository: Repository, { model: name, body }: EngineRequest): Promise<Answer> {
  const parsed = readJson(body, loadRequest);
  if (!parsed.ok) return refused(parsed.refusal);
  const [other] = Object.keys(parsed.value.parameters ?? {});
  if (other === 'config' || other?.startsWith('file:')) {
    return refused(refuse('UNSUPPORTED', 'overrides are not supported, put the files into the repository').refusal);
  }
  if (other !== undefined)
    return refused(refuse('INVALID_ARG', `unknown load parameter '${other.slice(0, 80)}'`).refusal);
  const loaded = await repository.load(name);
  return loaded.ok ? empty(true) : refused(loaded.refusal);
}

async function unload(repository: Repository, { model: name, body }: EngineRequest): Promise<Answer> {
  const parsed = readJson(body, unloadRequest);
  if (!parsed.ok) return refused(parsed.refusal);
  const unloaded = await repository.unload(name, parsed.value.parameters?.unload_dependents ?? false);
  return unloaded.ok ? empty(true) : refused(unloaded.refusal);
}
