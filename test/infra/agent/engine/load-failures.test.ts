import { describe, expect, it } from 'vitest';
import type { ModelState } from '../../../../infra/pool/agent/engine/engine.ts';
import { createLoadFailures } from '../../../../infra/pool/agent/engine/load-failures.ts';
import { readStates } from '../../../../infra/pool/agent/engine/repository.ts';
import { backOffMs } from '../../../../shared/back-off.ts';
import { MODEL_RELOAD_MAX_MS, MODEL_RELOAD_MS } from '../../../../shared/kserve/limits.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';

const bounds = { firstMs: MODEL_RELOAD_MS, maxMs: MODEL_RELOAD_MAX_MS };

const refused: Result<void> = no(refuse('engine_failed', undefined, 'no memory'));

/** An engine whose model `a` is in `state`; `retries`: it loads failed models again by itself. */
function begin(state: ModelState | undefined, retries = false) {
  const engine = { state, requests: [] as number[], loads: async () => refused };
  const lines: string[] = [];
  let time = 0;
  const failures = createLoadFailures({
    engine: {
      loaded: async () => ok(new Map(engine.state ? [['a', engine.state]] : [])),
      retriesLoads: async () => retries,
      load: async () => {
        engine.requests.push(time);
        return engine.loads();
      },
    },
    now: () => time,
    random: () => 1,
    log: (event, { model, detail, reason, count } = {}) =>
      lines.push([event, model, detail ?? reason, count].filter((part) => part !== undefined).join(' ')),
  });
  /** Looks every second, as the watch does. */
  const look = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      await failures.look();
      await new Promise(setImmediate);
      time += 1_000;
    }
  };
  return { engine, failures, lines, look };
}

const failed: ModelState = { is: 'failed', reason: 'out of memory' };

describe('A model that the engine failed to load', () => {
  it('A1 is requested with pauses that double up to a bound', async () => {
    const { engine, failures, lines, look } = begin(failed);
    await look(300);
    const pauses = engine.requests.map((at, request) => at - (engine.requests[request - 1] ?? 0));
    expect(pauses).toEqual(pauses.map((_, request) => backOffMs(request, bounds, 1)));
    expect(Math.max(...pauses)).toBe(bounds.maxMs);
    expect(failures.list()).toEqual([{ model: 'a', reason: 'out of memory' }]);
    expect(lines.slice(0, 3)).toEqual([
      'model-load-failed a out of memory',
      'model-load-requested a 1',
      'model-load-failed a no memory 1',
    ]);
  });

  it('A1 is logged and forgotten once it serves', async () => {
    const { engine, failures, lines, look } = begin(failed);
    engine.loads = async () => {
      engine.state = { is: 'ready' };
      return ok(undefined);
    };
    await look(5);
    expect([engine.requests.length, failures.list()]).toEqual([1, []]);
    expect(lines).toEqual([
      'model-load-failed a out of memory',
      'model-load-requested a 1',
      'model-load-recovered a 1',
    ]);
  });

  it('is requested once at a time, however long the load takes', async () => {
    const { engine, failures, look } = begin(failed);
    engine.loads = () => new Promise<Result<void>>(() => {});
    await look(300);
    expect([engine.requests.length, failures.list().length]).toEqual([1, 1]);
  });

  it('is left to an engine that loads it again itself', async () => {
    const { engine, failures, lines, look } = begin(failed, true);
    await look(300);
    expect([engine.requests, failures.list().length]).toEqual([[], 1]);
    engine.state = { is: 'ready' };
    await look(1);
    expect(lines).toEqual(['model-load-failed a out of memory', 'model-load-recovered a 0']);
  });

  it.each([
    ['unloaded on purpose', { is: 'idle' } as const],
    ['no longer in the repository', undefined],
  ])('is forgotten when it is %s', async (_, next) => {
    const { engine, failures, lines, look } = begin(failed);
    await look(1);
    engine.state = next;
    await look(60);
    expect([engine.requests, failures.list(), lines.length]).toEqual([[], [], 1]);
  });
});

it('an index tells failed models from those unloaded, loading or ready', () => {
  const entry = (name: string, state?: 'READY' | 'UNAVAILABLE' | 'LOADING', reason?: string, version = '1') => ({
    ...{ name, version },
    ...(state && { state }),
    ...(reason && { reason }),
  });
  const states = readStates([
    entry('failed', 'UNAVAILABLE', 'no file'),
    entry('unloaded', 'UNAVAILABLE', 'unloaded'),
    entry('loading', 'LOADING'),
    entry('older', 'UNAVAILABLE', 'no file', '2'),
    entry('older', 'READY'),
    { name: 'never' },
  ]);
  expect(Object.fromEntries([...states].map(([name, { is }]) => [name, is]))).toEqual({
    failed: 'failed',
    unloaded: 'idle',
    loading: 'loading',
    older: 'ready',
    never: 'idle',
  });
});
