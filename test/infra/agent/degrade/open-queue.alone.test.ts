import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DEGRADE_WINDOW_MS, WINDOWS_IN_A_ROW } from '../../../../infra/pool/agent/degrade/degrade.ts';
import { RESULT_CACHE_BYTES, RESULT_MS, ResultCache } from '../../../../infra/pool/agent/degrade/result-cache.ts';
import type { Engine, InferOutcome } from '../../../../infra/pool/agent/engine/engine.ts';
import { MACRO_WINDOW_MS, MICRO_WINDOW_MS } from '../../../../infra/pool/agent/engine/windows.ts';
import { openQueue } from '../../../../infra/pool/agent/open-queue.ts';
import type { Segment } from '../../../../shared/speech/transcript.ts';
import type { RequestClass } from '../../../../shared/tenant/claims.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A queue before an engine that answers at once, or after `answerMs`. */
function open({ windows = false, slots = 4, answerMs = 0, degradeWindowMs = DEGRADE_WINDOW_MS }) {
  const [started, events, logged]: [RequestClass[], object[], unknown[]] = [[], [], []];
  const engine = {
    async infer(): Promise<InferOutcome> {
      await vi.advanceTimersByTimeAsync(0);
      return new Promise((resolve) => setTimeout(() => resolve({ ok: true, value: new Map() }), answerMs));
    },
  } as unknown as Engine;
  const registry = new Registry();
  const queue = openQueue({
    settings: { agent: 'pool-0', slots, windows, degradeWindowMs },
    ...{ engine, registry, now: Date.now, gpu: () => undefined },
    outbox: { record: (event) => void events.push(event) },
    log: (event, fields) => void logged.push([event, fields]),
  });
  const { signal } = new AbortController();
  const run = (name: RequestClass, deadlineMs = 60_000) =>
    queue.dispatcher.run({
      ...{ model: 'm', inputs: [], outputs: [], class: name, deadline: Date.now() + deadlineMs, signal },
      onStart: () => started.push(name),
    });
  return { ...queue, registry, started, events, logged, run };
}

describe('the queue of an agent', () => {
  it('A13: starts work at once without windows', () => {
    const { run, started } = open({});
    void run('batch');
    expect(started).toEqual(['batch']);
  });

  it('A13: holds work for its window, and no longer once the slots fill up', async () => {
    const { run, started } = open({ windows: true, slots: 3 });
    // The least window: an eighth of the longest.
    void run('batch');
    void run('realtime');
    expect(started).toEqual([]);
    await vi.advanceTimersByTimeAsync(MICRO_WINDOW_MS / 8 + 1);
    expect(started).toEqual(['realtime']);
    await vi.advanceTimersByTimeAsync(MACRO_WINDOW_MS / 8);
    expect(started).toEqual(['realtime', 'batch']);
    for (let i = 0; i < 3; i++) void run('interactive');
    expect(started.slice(2)).toEqual(['interactive', 'interactive', 'interactive']);
  });

  it('A7: lengthens its windows while the queue is deep', async () => {
    const { run, registry } = open({ windows: true, slots: 2, answerMs: 100 });
    for (let i = 0; i < 200; i++) void run('default');
    await vi.advanceTimersByTimeAsync(2_500);
    const [value] = (await registry.getSingleMetric('auricle_agent_release_batch')?.get())?.values ?? [];
    expect(value?.value).toBeGreaterThan(16);
  });

  it('A20: degrades by missed deadlines, recovers, and tells both', async () => {
    const { run, degrader, results, registry, events, logged } = open({ slots: 1, answerMs: 400 });
    const gauge = async () => (await registry.getSingleMetric('auricle_agent_degraded')?.get())?.values[0]?.value;
    for (let i = 0; i < WINDOWS_IN_A_ROW; i++) {
      const all = Array.from({ length: 10 }, () => run('realtime', 500));
      await vi.advanceTimersByTimeAsync(DEGRADE_WINDOW_MS);
      await Promise.all(all);
    }
    expect([degrader.level(), await gauge()]).toEqual([1, 1]);
    results.set('key', { segments: [], totals: { seconds: 1, speechSeconds: 1 } }, Date.now());
    await vi.advanceTimersByTimeAsync(WINDOWS_IN_A_ROW * DEGRADE_WINDOW_MS);
    expect([degrader.level(), await gauge(), results.size]).toEqual([0, 0, 0]);
    const moved = { type: 'pool.degrade', agent: 'pool-0' };
    expect(events).toEqual([
      { ...moved, from: 0, to: 1 },
      { ...moved, from: 1, to: 0 },
    ]);
    expect(logged).toEqual([
      ['degraded', { count: 1 }],
      ['degraded', { count: 0 }],
    ]);
  });

  it('A20: never degrades where its setting is 0', async () => {
    const { run, degrader } = open({ slots: 1, answerMs: 400, degradeWindowMs: 0 });
    for (let i = 0; i < 20; i++) void run('realtime', 500);
    await vi.advanceTimersByTimeAsync(10 * DEGRADE_WINDOW_MS);
    expect(degrader.level()).toBe(0);
  });
});

describe('the cache of results', () => {
  const totals = { seconds: 1, speechSeconds: 1 };
  const resultOf = (text: string) => ({ segments: [{ type: 'segment', text } as Segment], totals });

  it('A20: forgets results by age', () => {
    const cache = new ResultCache();
    cache.set('a', resultOf('a'), 0);
    expect(cache.get('a', RESULT_MS - 1)).toEqual(resultOf('a'));
    expect([cache.get('a', RESULT_MS), cache.size]).toEqual([undefined, 0]);
  });

  it('A20: gives up the least recently used results beyond its bytes', () => {
    const cache = new ResultCache(1_000);
    for (const key of ['a', 'b', 'c']) {
      cache.set(key, resultOf('x'.repeat(300)), 0);
      cache.get('a', 0);
    }
    expect([cache.get('a', 0), cache.get('b', 0), cache.get('c', 0)].map((one) => one !== undefined)).toEqual([
      ...[true, false, true],
    ]);
    cache.set('d', resultOf('x'.repeat(RESULT_CACHE_BYTES)), 0);
    expect([cache.get('d', 0), cache.size]).toEqual([undefined, 2]);
  });
});
