import { z } from 'zod';
import { MiB } from '../../../../shared/bytes.ts';
import { serverMetadata } from '../../../../shared/kserve/metadata.ts';
import { type IndexEntry, indexEntry, LOAD_RETRY } from '../../../../shared/kserve/repository.ts';
import { HEARTBEAT_UNKNOWN_MS } from '../../../../shared/pool/limits.ts';
import { readBounded } from '../../../../shared/read-bounded.ts';

/** Longest load of a model on request: compiling one for an accelerator takes minutes. */
const ENGINE_LOAD_MS = 600_000;
/** Index of a repository: a name, a state and a reason of some hundred characters for each model. */
const ENGINE_INDEX_BYTES = MiB;

/** State of one model in the index of an engine; `idle`: not loaded, without a failure. */
export type ModelState =
  | { readonly is: 'ready' | 'loading' | 'idle' }
  | { readonly is: 'failed'; readonly reason: string };

/** The model repository of an engine, as KServe v2 shows it. No method rejects. */
export interface EngineRepository {
  /** The state of each model; `undefined` when the engine does not say. */
  states(): Promise<ReadonlyMap<string, ModelState> | undefined>;
  /** Whether the engine loads a failed model again by itself. */
  retries(): Promise<boolean>;
  /** Loads a model; returns the status, or the class of what went wrong. */
  load(model: string): Promise<string>;
}

const index = z.array(indexEntry);

/** Returns the state of one model from the entries of its versions. */
function stateOf(entries: readonly IndexEntry[]): ModelState {
  const has = (state: IndexEntry['state']) => entries.some((entry) => entry.state === state);
  if (has('READY')) return { is: 'ready' };
  if (has('LOADING') || has('UNLOADING')) return { is: 'loading' };
  const failed = entries.find(({ state, reason }) => state === 'UNAVAILABLE' && reason && reason !== 'unloaded');
  return failed?.reason ? { is: 'failed', reason: failed.reason } : { is: 'idle' };
}

/** Purely what an index says, by model. */
export function readStates(entries: readonly IndexEntry[]): ReadonlyMap<string, ModelState> {
  const names = new Set(entries.map(({ name }) => name));
  return new Map([...names].map((name) => [name, stateOf(entries.filter((entry) => entry.name === name))]));
}

export function createEngineRepository(url: string): EngineRepository {
  async function call(method: 'GET' | 'POST', path: string, milliseconds: number): Promise<Response> {
    const body = method === 'POST' ? { body: '{}', headers: { 'content-type': 'application/json' } } : {};
    return fetch(`${url}${path}`, { method, ...body, signal: AbortSignal.timeout(milliseconds) });
  }

  async function read<T extends z.ZodType>(schema: T, method: 'GET' | 'POST', path: string) {
    try {
      const response = await call(method, path, HEARTBEAT_UNKNOWN_MS);
      const bytes = await readBounded(response.body, ENGINE_INDEX_BYTES);
      if (!response.ok || !bytes) return undefined;
      return schema.safeParse(JSON.parse(new TextDecoder().decode(bytes))).data;
    } catch {
      return undefined;
    }
  }

  return {
    async states() {
      const entries = await read(index, 'POST', '/v2/repository/index');
      return entries && readStates(entries);
    },
    async retries() {
      return (await read(serverMetadata, 'GET', '/v2'))?.extensions.includes(LOAD_RETRY) === true;
    },
    async load(model) {
      try {
        const path = `/v2/repository/models/${encodeURIComponent(model)}/load`;
        const response = await call('POST', path, ENGINE_LOAD_MS);
        await response.body?.cancel();
        return `http_${response.status}`;
      } catch (error) {
        return error instanceof Error ? error.name : 'unknown';
      }
    },
  };
}
