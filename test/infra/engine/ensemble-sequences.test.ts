import { describe, expect, it } from 'vitest';
import type { Mark } from '../../../infra/pool/engine/batch/sequence-mark.ts';
import { VersionStatistics } from '../../../infra/pool/engine/batch/statistics.ts';
import { planEnsemble } from '../../../infra/pool/engine/ensemble/plan.ts';
import { serveEnsemble } from '../../../infra/pool/engine/ensemble/serve-ensemble.ts';
import { Turns } from '../../../infra/pool/engine/ensemble/turns.ts';
import type { Call } from '../../../infra/pool/engine/model/check-request.ts';
import type { Answer, Lease, Served } from '../../../infra/pool/engine/model/served.ts';
import { refuse } from '../../../infra/pool/engine/refuse.ts';
import { parseText } from '../../../infra/pool/models/config/parse-text.ts';
import { settle } from '../../../infra/pool/models/config/settle.ts';
import { fp32Tensor, readFp32 } from '../../../shared/kserve/tensor.ts';
import { ok } from '../../../shared/result.ts';
import { settle as settled } from '../../fake/clock.ts';
import { FakeEngineClock } from '../../fake/engine-instance.ts';

const io =
  'max_batch_size: 4 input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }';

function configOf(name: string, more = '') {
  const parsed = parseText(`${io} ${more}`);
  const config = parsed.ok ? settle(parsed.value, name) : parsed;
  if (!config.ok) throw new Error(config.refusal.reason);
  return config.value;
}

const valueIn = ({ inputs }: Call): number => {
  const read = readFp32(inputs[0]!);
  return read.ok ? (read.value[0] ?? 0) : 0;
};

/** A step whose answers the test releases, in any order. */
class HandStep implements Served {
  readonly version = 1;
  readonly statistics = new VersionStatistics();
  readonly pending = 0;
  readonly sequences = undefined;
  readonly calls: Call[] = [];
  readonly broken: Mark[] = [];
  readonly #answers: ((answer: Answer) => void)[] = [];
  readonly name: string;
  readonly takesSequences: boolean;
  readonly config: Served['config'];
  constructor(name: string, takesSequences: boolean) {
    this.name = name;
    this.takesSequences = takesSequences;
    this.config = configOf(name);
  }
  infer(call: Call): Promise<Answer> {
    this.calls.push(call);
    return new Promise((resolve) => {
      this.#answers.push(resolve);
      call.signal?.addEventListener('abort', () => resolve(refuse('CANCELLED', 'left', 'CANCELED')));
    });
  }
  async answer(index: number) {
    const outputs = [fp32Tensor('Y', Float32Array.of(valueIn(this.calls[index]!)), [1, 1])];
    this.#answers[index]!(ok({ outputs, durations: { queue: 0, input: 0, infer: 0, output: 0 } }));
    await settled();
  }
  readonly memoryBytes = 0;
  leases = 0;
  lease(): Lease {
    this.leases++;
    return {
      takesSequences: this.takesSequences,
      breakSequence: (mark: Mark) => void this.broken.push(mark),
      infer: (call) => this.infer(call),
      release: () => void this.leases--,
    };
  }
  async close() {}
}

function make(keeps = true) {
  const [first, second] = [new HandStep('first', false), new HandStep('second', keeps)];
  const find = (name: string) => ok<Served>(name === 'first' ? first : second);
  const step = (name: string, from: string, to: string) =>
    `step { model_name: "${name}" model_version: -1 input_map { key: "X" value: "${from}" } output_map { key: "Y" value: "${to}" } }`;
  const steps = `platform: "ensemble" ensemble_scheduling { ${step('first', 'X', 'half')} ${step('second', 'half', 'Y')} }`;
  const config = configOf('whole', steps);
  const plan = planEnsemble(config, ({ model_name }) => (model_name === 'first' ? first : second).config);
  if (!plan.ok) throw new Error(plan.refusal.reason);
  const parts = {
    ...{ config, version: 1, plan: plan.value, find, turns: new Turns() },
    ...{ statistics: new VersionStatistics(), clock: new FakeEngineClock() },
  };
  const whole = serveEnsemble(parts);
  const ask = (id: number, value: number, signal?: AbortSignal, on = whole) =>
    on.infer({
      inputs: [fp32Tensor('X', Float32Array.of(value), [1, 1])],
      outputs: [],
      priority: 0,
      timeoutUs: 0,
      signal,
      mark: { id, start: false, end: false },
    });
  /** Serves the ensemble again, as a load of any model does. */
  const again = () => serveEnsemble(parts);
  return { whole, again, first, second, ask };
}

describe('A18: sequences through an ensemble', () => {
  it('reach the stateful step in order without delaying other sequences', async () => {
    const { whole, first, second, ask } = make();
    expect(whole.takesSequences).toBe(true);
    const answers = [ask(1, 10), ask(1, 11), ask(2, 20)];
    await settled();
    expect(first.calls.map(valueIn)).toEqual([10, 20]);
    await first.answer(1);
    await first.answer(0);
    expect(second.calls.map(valueIn)).toEqual([20, 10]);
    expect(second.calls.map(({ mark }) => mark?.id)).toEqual([2, 1]);
    await second.answer(0);
    await second.answer(1);
    expect(first.calls.map(valueIn)).toEqual([10, 20, 11]);
    await first.answer(2);
    await second.answer(2);
    expect((await Promise.all(answers)).every((answer) => answer.ok)).toBe(true);
  });

  it('A16: keep their order while a load replaces the ensemble', async () => {
    const { again, first, second, ask } = make();
    const answers = [ask(1, 10), ask(1, 11, undefined, again())];
    await settled();
    expect(first.calls.map(valueIn)).toEqual([10]);
    expect([first.leases, second.leases]).toEqual([2, 2]);
    for (const index of [0, 1]) {
      await first.answer(index);
      await second.answer(index);
    }
    expect((await Promise.all(answers)).every((answer) => answer.ok)).toBe(true);
    expect([first.leases, second.leases]).toEqual([0, 0]);
  });

  it('an ensemble without a stateful step runs them in parallel', async () => {
    const { whole, first, ask } = make(false);
    expect(whole.takesSequences).toBe(false);
    void [ask(1, 10), ask(1, 11)];
    await settled();
    expect(first.calls.map(valueIn)).toEqual([10, 11]);
  });

  it('a request cancelled on its way breaks its sequence and frees its turn', async () => {
    const { first, second, ask } = make();
    const leaves = new AbortController();
    const left = ask(1, 10, leaves.signal);
    const next = ask(1, 11);
    await settled();
    leaves.abort();
    expect(await left).toMatchObject({ ok: false, refusal: { failure: 'CANCELED' } });
    expect(second.broken).toMatchObject([{ id: 1 }]);
    await settled();
    expect(first.calls.map(valueIn)).toEqual([10, 11]);
    await first.answer(1);
    await second.answer(0);
    expect((await next).ok).toBe(true);
  });
});
