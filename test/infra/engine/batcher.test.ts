import { describe, expect, it } from 'vitest';
import { Batcher } from '../../../infra/pool/engine/batch/batcher.ts';
import type { BatchRequest, Outcome } from '../../../infra/pool/engine/batch/job.ts';
import { VersionStatistics } from '../../../infra/pool/engine/batch/statistics.ts';
import { serveNetwork } from '../../../infra/pool/engine/model/serve-network.ts';
import { parseText } from '../../../infra/pool/models/config/parse-text.ts';
import { settle } from '../../../infra/pool/models/config/settle.ts';
import { fp32Tensor, readFp32 } from '../../../shared/kserve/tensor.ts';
import { FakeEngineClock, FakeInstance } from '../../fake/engine-instance.ts';

function make(batching: string, instances = [new FakeInstance()]) {
  const text = `max_batch_size: 4 input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 } ${batching}`;
  const parsed = parseText(text);
  const config = parsed.ok ? settle(parsed.value, 'm') : parsed;
  if (!config.ok) throw new Error(config.refusal.reason);
  const clock = new FakeEngineClock();
  const statistics = new VersionStatistics();
  const batcher = new Batcher({ config: config.value, instances, statistics, clock });
  const ask = (value: number, given: Partial<BatchRequest> = {}): Promise<Outcome> =>
    batcher.enqueue({
      inputs: [fp32Tensor('X', Float32Array.of(value), [1, 1])],
      outputs: ['Y'],
      size: 1,
      shape: '1',
      priority: 0,
      timeoutUs: 0,
      signal: undefined,
      ...given,
    });
  const network = { config: config.value, instances, statistics, clock };
  return { batcher, network, clock, statistics, ask, instances };
}

const firstValue = (outcome: Outcome) => {
  const read = outcome.ok ? readFp32(outcome.value.outputs[0]!) : outcome;
  return read.ok ? read.value[0] : undefined;
};

describe('the batcher', () => {
  it('A1: sends a partial batch after the delay', async () => {
    const {
      ask,
      clock,
      instances: [instance],
    } = make('dynamic_batching { max_queue_delay_microseconds: 100 }');
    const answers = [ask(1), ask(2)];
    expect(instance!.batches).toEqual([]);
    clock.advance(99);
    expect(instance!.batches).toEqual([]);
    clock.advance(100);
    expect(instance!.batches).toEqual([[1, 2]]);
    await instance!.finish();
    expect((await Promise.all(answers)).map(firstValue)).toEqual([1, 2]);
    expect(clock.armed).toBe(0);
  });

  it('A1: instances work side by side, each on its own batch', async () => {
    const { ask, instances } = make('dynamic_batching { }', [new FakeInstance(), new FakeInstance()]);
    const answers = [ask(1), ask(2), ask(3), ask(4)];
    expect(instances.map(({ batches }) => batches)).toEqual([[[1]], [[2]]]);
    await instances[1]!.finish();
    expect(instances[1]!.batches).toEqual([[2], [3, 4]]);
    await instances[0]!.finish();
    await instances[1]!.finish();
    expect((await Promise.all(answers)).map(firstValue)).toEqual([1, 2, 3, 4]);
  });

  it('A2: rejects a late request while the instance is still busy', async () => {
    const {
      ask,
      clock,
      instances: [instance],
    } = make('dynamic_batching { default_queue_policy { default_timeout_microseconds: 50 } }');
    const running = ask(1);
    const late = ask(2);
    clock.advance(51);
    expect(await late).toMatchObject({
      refusal: { code: 'UNAVAILABLE', text: 'Request timeout expired', failure: 'REJECTED' },
    });
    await instance!.finish();
    expect(firstValue(await running)).toBe(1);
    expect(instance!.batches).toEqual([[1]]);
  });

  it('drops an abandoned waiting request, but not a running one', async () => {
    const {
      ask,
      batcher,
      instances: [instance],
    } = make('dynamic_batching { }');
    const leaves = new AbortController();
    const running = ask(1, { signal: leaves.signal });
    const waiting = ask(2, { signal: leaves.signal });
    expect(batcher.pending).toBe(1);
    leaves.abort();
    expect(await waiting).toMatchObject({ refusal: { code: 'CANCELLED', failure: 'CANCELED' } });
    expect(batcher.pending).toBe(0);
    await instance!.finish();
    expect(firstValue(await running)).toBe(1);
    expect(await ask(3, { signal: leaves.signal })).toMatchObject({ refusal: { failure: 'CANCELED' } });
  });

  it('repeats a failed batch singly, so that only the culprit fails', async () => {
    const {
      ask,
      statistics,
      instances: [instance],
    } = make('dynamic_batching { preferred_batch_size: 3 max_queue_delay_microseconds: 100 }');
    const answers = Promise.all([ask(1), ask(13), ask(3)]);
    for (let run = 0; run < 4; run++) await instance!.finish();
    const outcomes = await answers;
    expect(outcomes.map(firstValue)).toEqual([1, undefined, 3]);
    expect(outcomes[1]).toMatchObject({ refusal: { code: 'INTERNAL', failure: 'BACKEND' } });
    expect(instance!.batches).toEqual([[1, 13, 3], [1], [13], [3]]);
    expect(statistics.executions).toBe(2);
  });

  it('close refuses new requests and finishes accepted ones', async () => {
    const {
      ask,
      batcher,
      instances: [instance],
    } = make('dynamic_batching { preferred_batch_size: 2 max_queue_delay_microseconds: 1000 }');
    const waiting = ask(1);
    const closed = batcher.close();
    expect(await ask(2)).toMatchObject({ refusal: { code: 'UNAVAILABLE', failure: 'REJECTED' } });
    expect(instance!.closed).toBe(false);
    expect(instance!.batches).toEqual([[1]]);
    await instance!.finish();
    await closed;
    expect(firstValue(await waiting)).toBe(1);
    expect(instance!.closed).toBe(true);
  });
});

it('A16: a closing model serves requests under a lease and then frees its instance', async () => {
  const {
    network,
    instances: [instance],
  } = make('dynamic_batching { max_queue_delay_microseconds: 100 }');
  const served = serveNetwork(1, network, 0);
  const lease = served.lease();
  const closed = served.close();
  const answer = lease.infer({
    ...{ inputs: [fp32Tensor('X', Float32Array.of(1), [1, 1])], outputs: [] },
    ...{ priority: 0, timeoutUs: 0, signal: undefined, mark: undefined },
  });
  await instance!.finish();
  expect((await answer).ok).toBe(true);
  expect(instance!.closed).toBe(false);
  lease.release();
  await closed;
  expect(instance!.closed).toBe(true);
});
