import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { makeBody } from '../../../../shared/kserve/body.ts';
import { serverMetadata } from '../../../../shared/kserve/metadata.ts';
import { type IndexEntry, indexEntry, LOAD_RETRY } from '../../../../shared/kserve/repository.ts';
import { memoryMessage } from '../../../../shared/kserve/statistics.ts';
import { LOAD_REASON_CHARACTERS } from '../../../../shared/pool/heartbeat.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { Engine, ModelState } from './engine.ts';
import type { EngineRequest, EngineResponse } from './http.ts';
import { readConfigs } from './queues.ts';

/** Longest load of a model: compiling one for an accelerator takes minutes. */
const ENGINE_LOAD_MS = 600_000;
/** Longest unload of a model: an engine finishes running requests first, and each has a shorter deadline. */
const ENGINE_UNLOAD_MS = 120_000;
/** Pause between two polls of an engine that answers an unload before the memory is free. */
const ENGINE_UNLOAD_POLL_MS = 50;

type Done = Result<void>;
const done: Done = ok(undefined);
const failed = (detail: string) => no(refuse('engine_failed', undefined, detail));
const index = z.array(indexEntry);
const errorBody = z.object({ error: z.string() });

/** Returns the state of one model from the entries of its versions. */
function stateOf(entries: readonly IndexEntry[]): ModelState {
  const has = (state: IndexEntry['state']) => entries.some((entry) => entry.state === state);
  if (has('READY')) return { is: 'ready' };
  if (has('LOADING')) return { is: 'loading' };
  if (has('UNLOADING')) return { is: 'unloading' };
  const failure = entries.find(({ state, reason }) => state === 'UNAVAILABLE' && reason && reason !== 'unloaded');
  return failure?.reason ? { is: 'failed', reason: failure.reason } : { is: 'idle' };
}

/** Returns the states of an index, by model. */
export function readStates(entries: readonly IndexEntry[]): ReadonlyMap<string, ModelState> {
  const names = new Set(entries.map(({ name }) => name));
  return new Map([...names].map((name) => [name, stateOf(entries.filter((entry) => entry.name === name))]));
}

/**
 * Returns the engine's reason in a refusal of its repository, in one line: names and causes of models, never a
 * request's content.
 */
function reasonIn({ status, body }: EngineResponse): string {
  try {
    const { error } = errorBody.parse(JSON.parse(new TextDecoder().decode(body)));
    return error.replaceAll(/\s+/g, ' ').trim().slice(0, LOAD_REASON_CHARACTERS);
  } catch {
    return `engine status ${status}`;
  }
}

/** Resolves as `work` does, or with `otherwise` as soon as `signal` aborts. */
function orAborted<T>(work: Promise<T>, signal: AbortSignal, otherwise: T): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<T>();
  const onAbort = () => resolve(otherwise);
  signal.addEventListener('abort', onAbort, { once: true });
  void work.then(resolve).finally(() => signal.removeEventListener('abort', onAbort));
  return promise;
}

/**
 * Runs loads and unloads of one model one after the other; a second one of the kind that is last in line joins it. An
 * abort ends the wait of one caller.
 */
function createTurns() {
  const last = new Map<string, { readonly kind: 'load' | 'unload'; readonly work: Promise<Done> }>();
  return (kind: 'load' | 'unload', model: string, signal: AbortSignal, act: () => Promise<Done>): Promise<Done> => {
    if (signal.aborted) return Promise.resolve(failed(`${kind}: aborted`));
    const before = last.get(model);
    const work = before?.kind === kind ? before.work : (before?.work ?? Promise.resolve()).then(act);
    if (work !== before?.work) {
      const turn = { kind, work };
      last.set(model, turn);
      void work.finally(() => last.get(model) === turn && last.delete(model));
    }
    return orAborted(work, signal, failed(`${kind}: aborted`));
  };
}

type Calls = {
  request(request: EngineRequest): Promise<EngineResponse>;
  getJson(path: string, signal: AbortSignal): Promise<unknown>;
};

/** Creates the calls to the model repository of a KServe v2 engine. No method rejects. */
export function createRepositoryCalls({
  request,
  getJson,
}: Calls): Pick<Engine, 'loaded' | 'load' | 'unload' | 'memory' | 'retriesLoads'> {
  const inTurn = createTurns();
  const at = (model: string) => encodeURIComponent(model);
  const configsOf = (model: string, signal: AbortSignal) =>
    readConfigs(model, (name) => getJson(`/v2/models/${at(name)}/config`, signal));

  async function post(path: string, message: object, signal: AbortSignal): Promise<Result<EngineResponse>> {
    try {
      const response = await request({ method: 'POST', path, body: makeBody(JSON.stringify(message), []), signal });
      return response.status === 200 ? ok(response) : failed(reasonIn(response));
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'no answer';
      return failed(signal.aborted ? 'engine timeout' : `engine ${code}`);
    }
  }

  async function loaded(signal: AbortSignal): Promise<Result<ReadonlyMap<string, ModelState>>> {
    const response = await post('/v2/repository/index', {}, signal);
    if (!response.ok) return response;
    try {
      return ok(readStates(index.parse(JSON.parse(new TextDecoder().decode(response.value.body)))));
    } catch {
      return failed('engine index');
    }
  }

  async function load(model: string): Promise<Done> {
    const sent = await post(`/v2/repository/models/${at(model)}/load`, {}, AbortSignal.timeout(ENGINE_LOAD_MS));
    return sent.ok ? done : sent;
  }

  /** The embedded engine answers when the memory is free. Triton answers at once, so its index is polled. */
  async function unload(model: string): Promise<Done> {
    const signal = AbortSignal.timeout(ENGINE_UNLOAD_MS);
    const names = await configsOf(model, signal).then(
      (configs) => [...configs.keys()],
      () => [model],
    );
    const parameters = { unload_dependents: true };
    const sent = await post(`/v2/repository/models/${at(model)}/unload`, { parameters }, signal);
    if (!sent.ok) return sent;
    for (;;) {
      const states = await loaded(signal);
      if (!states.ok) return states;
      const is = (name: string) => states.value.get(name)?.is;
      const freeing = is(model) === 'ready' || names.some((name) => is(name) === 'unloading');
      if (!freeing) return done;
      await sleep(ENGINE_UNLOAD_POLL_MS);
    }
  }

  return {
    loaded,
    load: (model, signal) => inTurn('load', model, signal, () => load(model)),
    unload: (model, signal) => inTurn('unload', model, signal, () => unload(model)),
    async memory(model, signal) {
      try {
        const configs = [...(await configsOf(model, signal))].filter(([, config]) => !config.ensemble_scheduling);
        const read = configs.map(async ([name]) =>
          memoryMessage.parse(await getJson(`/v2/models/${at(name)}/stats`, signal)),
        );
        const versions = (await Promise.all(read)).flatMap(({ model_stats: versions }) => versions);
        const usages = versions.flatMap(({ memory_usage: usages = [] }) => usages);
        // A sum that lacks a step would look like a small model.
        if (versions.some(({ memory_usage: usages = [] }) => usages.length === 0)) return undefined;
        const measured = usages.some(({ source }) => source === 'measured');
        const bytes = usages.reduce((total, { byte_size: size }) => total + size, 0);
        return { bytes, source: measured ? 'measured' : 'reported' };
      } catch {
        return undefined;
      }
    },
    async retriesLoads(signal) {
      try {
        return serverMetadata.parse(await getJson('/v2', signal)).extensions.includes(LOAD_RETRY);
      } catch {
        return false;
      }
    },
  };
}
