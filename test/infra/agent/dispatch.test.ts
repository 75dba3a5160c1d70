import { describe, expect, it } from 'vitest';
import { createDispatcher } from '../../../infra/pool/agent/dispatch.ts';
import type { Engine, Inference, InferOutcome } from '../../../infra/pool/agent/engine.ts';
import { limits } from '../../../shared/limits.ts';
import { ok } from '../../../shared/result.ts';
import type { RequestClass } from '../../../shared/tenant/claims.ts';

/** An engine whose answers the test gives, one by one. */
function manualEngine() {
  const asked: { inference: Inference; answer: (outcome: InferOutcome) => void }[] = [];
  const engine = {
    infer: (inference: Inference) =>
      new Promise<InferOutcome>((answer) => {
        asked.push({ inference, answer });
      }),
  } as unknown as Engine;
  return { engine, asked };
}

const done: InferOutcome = { ok: true, value: new Map() };
const task = (name: RequestClass, signal = new AbortController().signal, deadline = 60_000) => ({
  model: name,
  inputs: [],
  outputs: [],
  class: name,
  deadline,
  signal,
});
/** Lets everything run that can. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('dispatcher', () => {
  it('keeps to its slots and starts the most urgent next (A2)', async () => {
    const { engine, asked } = manualEngine();
    const dispatcher = createDispatcher({ engine, slots: 1, now: () => 0 });
    const all = (['default', 'batch', 'realtime', 'interactive'] as const).map((name) => dispatcher.run(task(name)));
    for (let i = 0; i < 4; i++) {
      await settle();
      expect(asked.length).toBe(i + 1);
      asked[i]?.answer(done);
    }
    await Promise.all(all);
    // The first found a free slot; the others were sorted while it ran.
    expect(asked.map(({ inference }) => inference.model)).toEqual(['default', 'realtime', 'interactive', 'batch']);
    expect(asked.map(({ inference }) => inference.priority)).toEqual([3, 1, 2, 4]);
  });

  it('A2: says a level that the model has at the engine, or none', async () => {
    const { engine, asked } = manualEngine();
    const dispatcher = createDispatcher({
      engine,
      slots: 2,
      levels: (model) => Number(model === 'batch') * 2,
      now: () => 0,
    });
    const all = (['batch', 'default'] as const).map((name) => dispatcher.run(task(name)));
    await settle();
    expect(asked.map(({ inference }) => inference.priority)).toEqual([2, 0]);
    for (const { answer } of asked) answer(done);
    await Promise.all(all);
  });

  it('tries once more when that may help, and no more', async () => {
    const { engine, asked } = manualEngine();
    const dispatcher = createDispatcher({ engine, slots: 1, now: () => 0 });
    const failing: InferOutcome = { ok: false, retryable: true, detail: 'engine status 503' };
    const answer = dispatcher.run(task('default'));
    await settle();
    asked[0]?.answer(failing);
    await settle();
    asked[1]?.answer(failing);
    expect(await answer).toMatchObject({ ok: false, refusal: { reason: 'engine_failed' } });
    expect(asked.length).toBe(2);
    const hopeless = dispatcher.run(task('default'));
    await settle();
    asked[2]?.answer({ ok: false, retryable: false, detail: 'engine status 400' });
    expect(await hopeless).toMatchObject({ ok: false, refusal: { reason: 'engine_failed' } });
    expect(asked.length).toBe(3);
  });

  it('gives a withdrawn utterance its place back and never asks for it', async () => {
    const { engine, asked } = manualEngine();
    const dispatcher = createDispatcher({ engine, slots: 1, now: () => 0 });
    const first = dispatcher.run(task('default'));
    const gone = new AbortController();
    const second = dispatcher.run(task('realtime', gone.signal));
    expect(dispatcher.queued().realtime).toBe(1);
    gone.abort();
    expect(await second).toMatchObject({ ok: false });
    expect(dispatcher.queued().realtime).toBe(0);
    asked[0]?.answer(done);
    await first;
    expect(asked.length).toBe(1);
    expect(dispatcher.busy()).toBe(0);
  });

  it('gives up what is late without asking the engine', async () => {
    let now = 0;
    const { engine, asked } = manualEngine();
    const dispatcher = createDispatcher({ engine, slots: 1, now: () => now });
    const first = dispatcher.run(task('default'));
    const late = dispatcher.run(task('default', undefined, 10));
    now = 20;
    asked[0]?.answer(done);
    await first;
    expect(await late).toMatchObject({ ok: false, refusal: { reason: 'deadline_passed' } });
    expect(asked.length).toBe(1);
  });

  it('refuses as busy when the queue is full', async () => {
    const { engine } = manualEngine();
    const dispatcher = createDispatcher({ engine, slots: 1, now: () => 0 });
    for (let i = 0; i < limits.queuedUtterances.value + 1; i++) void dispatcher.run(task('batch'));
    expect(await dispatcher.run(task('realtime'))).toMatchObject({ ok: false, refusal: { reason: 'pool_busy' } });
  });

  it('a bug in a piece of work is a refusal, and its slot is free again', async () => {
    const { engine } = manualEngine();
    const dispatcher = createDispatcher({ engine, slots: 1, now: () => 0 });
    const { signal } = new AbortController();
    const broken = await dispatcher.hold({ class: 'default', deadline: 60_000, signal }, () =>
      Promise.reject(new TypeError('content of a caller')),
    );
    expect(broken).toMatchObject({ ok: false, refusal: { reason: 'internal' } });
    expect(JSON.stringify(broken)).not.toContain('content of a caller');
    expect(dispatcher.busy()).toBe(0);
    const next = dispatcher.hold({ class: 'default', deadline: 60_000, signal }, async () => ok('served'));
    expect(await next).toEqual(ok('served'));
  });
});
