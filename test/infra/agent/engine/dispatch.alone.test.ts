import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createDispatcher } from '../../../../infra/pool/agent/engine/dispatch.ts';
import type { Engine, Inference, InferOutcome } from '../../../../infra/pool/agent/engine/engine.ts';
import { QUEUED_UTTERANCES_MAX } from '../../../../infra/pool/agent/engine/limits.ts';
import { ENGINE_SILENT_MS, ENGINE_SILENT_TIMES, silentAfter } from '../../../../infra/pool/agent/engine/patience.ts';
import { ENGINE_MS } from '../../../../infra/pool/agent/settings/limits.ts';
import { ok } from '../../../../shared/result.ts';
import type { RequestClass } from '../../../../shared/tenant/claims.ts';
import { settle } from '../../../fake/clock.ts';

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

  it('A2 R13 a full queue refuses batch, and displaces batch for realtime', async () => {
    const { engine } = manualEngine();
    const dispatcher = createDispatcher({ engine, slots: 1, now: () => 0 });
    const waiting = Array.from({ length: QUEUED_UTTERANCES_MAX + 1 }, () => dispatcher.run(task('batch')));
    const busy = { ok: false, refusal: { reason: 'pool_busy' } };
    expect(await dispatcher.run(task('batch'))).toMatchObject(busy);
    void dispatcher.run(task('realtime'));
    expect(await waiting.at(-1)).toMatchObject(busy);
    expect(dispatcher.queued()).toMatchObject({ realtime: 1, batch: QUEUED_UTTERANCES_MAX - 1 });
  });

  it('an exception in a task is a refusal, and frees its slot', async () => {
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

describe('A8 C6 an engine that hangs', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }));
  afterEach(() => void vi.useRealTimers());
  const silence = ENGINE_SILENT_MS;
  const lost = { ok: false, refusal: { reason: 'engine_failed' } };

  /** An engine that answers when the test says so, or when it is not waited for any longer. */
  async function workshop(slots: number) {
    const { engine, asked } = manualEngine();
    const infer = engine.infer.bind(engine);
    engine.infer = (inference) => {
      const answered = infer(inference);
      const answer = asked.at(-1)?.answer;
      inference.signal.addEventListener('abort', () => answer?.({ ok: false, retryable: true, detail: 'aborted' }));
      return answered;
    };
    const dispatcher = createDispatcher({ engine, slots, now: Date.now });
    /** Its end, once there is one. */
    const run = () => {
      const seen: { end?: unknown } = {};
      const started = dispatcher.run(task('default', undefined, Date.now() + 600_000));
      void started.then((end) => {
        seen.end = end;
      });
      return seen;
    };
    const pass = async (milliseconds: number) => {
      await vi.advanceTimersByTimeAsync(milliseconds);
      await settle();
    };
    // It is known how long an inference takes.
    run();
    await pass(0);
    asked[0]?.answer(done);
    await pass(0);
    return { asked, run, pass, dispatcher };
  }

  it('is given up after a multiple of what it usually takes, within bounds', () => {
    const times = ENGINE_SILENT_TIMES;
    expect([undefined, 0, silence / times, silence / 2, 1e9].map(silentAfter)).toEqual([
      ENGINE_MS,
      silence,
      silence,
      Math.min((silence / 2) * times, ENGINE_MS),
      ENGINE_MS,
    ]);
  });

  it('fails in-flight and queued requests at once, without retry; accepts new ones', async () => {
    const { asked, run, pass, dispatcher } = await workshop(1);
    const atIt = run();
    await pass(silence - 1);
    const waiting = run();
    expect([atIt.end, waiting.end]).toEqual([undefined, undefined]);
    await pass(1);
    expect([atIt.end, waiting.end]).toMatchObject([lost, lost]);
    expect(asked).toHaveLength(2);
    expect(dispatcher.busy()).toBe(0);
    await pass(1);
    const later = run();
    await pass(0);
    asked[2]?.answer(done);
    await pass(0);
    expect(later.end).toMatchObject({ ok: true });
  });

  it('differs from a slow one: while answers arrive no request fails', async () => {
    const { asked, run, pass } = await workshop(2);
    const slow = run();
    for (let answered = 2; answered < 6; answered++) {
      run();
      await pass(silence - 1);
      asked[answered]?.answer(done);
      await pass(0);
    }
    expect(slow.end).toBeUndefined();
    asked[1]?.answer(done);
    await pass(0);
    expect(slow.end).toMatchObject({ ok: true });
  });

  it('without a first answer for a model gets the whole timeout', async () => {
    const { engine } = manualEngine();
    const dispatcher = createDispatcher({ engine, slots: 1, now: Date.now });
    let ended = false;
    void dispatcher.run(task('default', undefined, Date.now() + 600_000)).then(() => {
      ended = true;
    });
    await vi.advanceTimersByTimeAsync(ENGINE_MS - 1);
    expect(ended).toBe(false);
  });
});
