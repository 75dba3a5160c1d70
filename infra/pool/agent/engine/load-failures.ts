import { backOffMs } from '../../../../shared/back-off.ts';
import { MODEL_RELOAD_MAX_MS, MODEL_RELOAD_MS } from '../../../../shared/kserve/limits.ts';
import type { LoadFailure } from '../../../../shared/pool/heartbeat.ts';
import { LOAD_REASON_CHARACTERS } from '../../../../shared/pool/heartbeat.ts';
import { HEARTBEAT_UNKNOWN_MS } from '../../../../shared/pool/limits.ts';
import type { Log } from '../telemetry/log.ts';
import type { Engine } from './engine.ts';

export interface LoadFailuresOptions {
  readonly engine: Pick<Engine, 'loaded' | 'load' | 'retriesLoads'>;
  readonly now: () => number;
  readonly random?: () => number;
  readonly log: Log;
}

const pauses = { firstMs: MODEL_RELOAD_MS, maxMs: MODEL_RELOAD_MAX_MS };

interface Failed {
  readonly reason: string;
  /** Loads that the agent has requested. */
  readonly requests: number;
  /** Time of the next one, epoch ms. */
  readonly dueAt: number;
}

/**
 * Models that the engine failed to load. Requests their load again with bounded exponential back-off, one at a time, from
 * an engine that does not do so itself.
 */
export function createLoadFailures({ engine, now, random = Math.random, log }: LoadFailuresOptions) {
  const failed = new Map<string, Failed>();
  let loading: Promise<void> | undefined;

  const dueAfter = (requests: number) => now() + backOffMs(requests, pauses, random());

  async function requestLoad(model: string): Promise<void> {
    const known = failed.get(model);
    if (!known) return;
    const requests = known.requests + 1;
    failed.set(model, { ...known, requests, dueAt: Number.POSITIVE_INFINITY });
    log('model-load-requested', { model, count: requests });
    // The engine bounds a load itself.
    const outcome = await engine.load(model, new AbortController().signal);
    if (!outcome.ok) log('model-load-failed', { model, detail: outcome.refusal.detail ?? '', count: requests });
    const after = failed.get(model);
    if (after) failed.set(model, { ...after, dueAt: dueAfter(requests) });
  }

  return {
    /** Reads the engine's index, and requests the load that is due. */
    async look(): Promise<void> {
      const signal = AbortSignal.timeout(HEARTBEAT_UNKNOWN_MS);
      const states = await engine.loaded(signal);
      if (!states.ok) return;
      for (const [model, state] of states.value) {
        const known = failed.get(model);
        if (state.is === 'failed') {
          const reason = state.reason.slice(0, LOAD_REASON_CHARACTERS);
          if (known?.reason !== reason) log('model-load-failed', { model, detail: reason });
          failed.set(model, known ? { ...known, reason } : { reason, requests: 0, dueAt: dueAfter(0) });
        } else if (known && state.is !== 'loading' && state.is !== 'unloading') {
          if (state.is === 'ready') log('model-load-recovered', { model, count: known.requests });
          failed.delete(model);
        }
      }
      for (const model of failed.keys()) if (!states.value.has(model)) failed.delete(model);
      const due = [...failed].find(([, { dueAt }]) => dueAt <= now())?.[0];
      if (due === undefined || loading || (await engine.retriesLoads(signal))) return;
      loading = requestLoad(due).finally(() => {
        loading = undefined;
      });
    },
    list: (): LoadFailure[] => [...failed].map(([model, { reason }]) => ({ model, reason })),
  };
}
