import { describe, expect, it } from 'vitest';
import type { Outcome } from '../../../infra/pool/engine/batch/job.ts';
import { VersionStatistics } from '../../../infra/pool/engine/batch/statistics.ts';
import { Sequencer } from '../../../infra/pool/engine/sequence/sequencer.ts';
import { parseText } from '../../../infra/pool/models/config/parse-text.ts';
import { settle } from '../../../infra/pool/models/config/settle.ts';
import { fp32Tensor, readFp32 } from '../../../shared/kserve/tensor.ts';
import { settle as settled } from '../../fake/clock.ts';
import { FakeEngineClock, FakeInstance } from '../../fake/engine-instance.ts';

const io = 'input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }';

interface Given {
  readonly start?: boolean;
  readonly end?: boolean;
  readonly signal?: AbortSignal;
  readonly timeoutUs?: number;
}

function make(batching: string, instances = [new FakeInstance()]) {
  const parsed = parseText(`max_batch_size: 4 ${io} sequence_batching { ${batching} }`);
  const config = parsed.ok ? settle(parsed.value, 'm') : parsed;
  if (!config.ok) throw new Error(config.refusal.reason);
  const clock = new FakeEngineClock();
  const statistics = new VersionStatistics();
  const sequencer = new Sequencer({ config: config.value, instances, statistics, clock });
  const ask = async (id: number, value: number, given: Given = {}): Promise<Outcome> => {
    const answer = sequencer.enqueue({
      inputs: [fp32Tensor('X', Float32Array.of(value), [1, 1])],
      outputs: ['Y'],
      size: 1,
      shape: '1',
      priority: 0,
      timeoutUs: given.timeoutUs ?? 0,
      signal: given.signal,
      mark: { id, start: given.start ?? false, end: given.end ?? false },
    });
    return answer;
  };
  return { sequencer, clock, statistics, ask, instances, instance: instances[0]! };
}

const START = { start: true };
const END = { end: true };
const ONLY = { start: true, end: true };

const readValue = (outcome: Outcome): number | string | undefined => {
  if (!outcome.ok) return outcome.refusal.failure;
  const read = readFp32(outcome.value.outputs[0]!);
  return read.ok ? read.value[0] : undefined;
};
const saying = (text: string) => ({ ok: false, refusal: { text: expect.stringContaining(text) } });
const unknown = saying('must specify the START flag');

/** An idle timeout of ten microseconds, for a readable clock. */
const oldest = (more = '') => `oldest { ${more} } max_sequence_idle_microseconds: 10`;

describe('A5: sequences of one model', () => {
  it('gives a sequence a slot and names it in every request', async () => {
    const { ask, instance, sequencer } = make(oldest());
    const first = ask(7, 1, START);
    await settled();
    expect(instance.rows[0]).toMatchObject([{ id: 7, slot: 0, start: true, end: false }]);
    expect(sequencer.sequences).toBe(1);
    await instance.finish();
    const second = ask(7, 2, END);
    await settled();
    expect(instance.rows[1]).toMatchObject([{ id: 7, slot: 0, start: false, end: true }]);
    await instance.finish();
    expect([await first, await second].map(readValue)).toEqual([1, 2]);
    expect(sequencer.sequences).toBe(0);
  });

  it('runs one request of a sequence at a time, several sequences together', async () => {
    const { ask, instance } = make(oldest());
    const answers = [ask(1, 10, START), ask(1, 11), ask(2, 20, START), ask(2, 21), ask(1, 12)];
    await settled();
    expect(instance.batches).toEqual([[10, 20]]);
    await instance.finish();
    expect(instance.batches).toEqual([
      [10, 20],
      [11, 21],
    ]);
    await instance.finish();
    await instance.finish();
    expect((await Promise.all(answers)).map(readValue)).toEqual([10, 11, 20, 21, 12]);
  });

  it('keeps a sequence on its instance and spreads sequences', async () => {
    const { ask, instances } = make(oldest(), [new FakeInstance(), new FakeInstance()]);
    void [ask(1, 1, START), ask(2, 2, START), ask(3, 3, START)];
    await settled();
    expect(instances.map(({ batches }) => batches.flat().length)).toEqual([2, 1]);
    for (const instance of instances) await instance.finish();
    for (const instance of instances) await instance.finish();
    void [ask(1, 1), ask(2, 2), ask(3, 3)];
    await settled();
    for (let turn = 0; turn < 3; turn++) for (const instance of instances) await instance.finish();
    for (const { rows } of instances) {
      const places = new Map<unknown, number>();
      for (const row of rows.flat() as { id?: unknown; slot: number }[]) {
        expect(places.get(row.id) ?? row.slot).toBe(row.slot);
        places.set(row.id, row.slot);
      }
    }
    const [one, other] = instances.map(({ rows }) => new Set((rows.flat() as { id?: unknown }[]).map(({ id }) => id)));
    expect([...(one ?? [])].filter((id) => other?.has(id))).toEqual([]);
  });

  it('expires an idle sequence once, by its clock', async () => {
    const { ask, clock, instance, sequencer, statistics } = make(oldest());
    void ask(1, 1, START);
    await settled();
    // A sequence is not idle while a request of it waits or runs.
    clock.advance(100);
    expect(sequencer.sequences).toBe(1);
    await instance.finish();
    clock.advance(109);
    expect(sequencer.sequences).toBe(1);
    void ask(1, 2);
    await settled();
    await instance.finish();
    clock.advance(118);
    expect(sequencer.sequences).toBe(1);
    clock.advance(119);
    expect(sequencer.sequences).toBe(0);
    expect(instance.forgotten).toEqual([0]);
    expect(statistics.expiredSequences).toBe(1);
    expect(await ask(1, 3)).toMatchObject(unknown);
    expect(clock.armed).toBe(0);
  });

  it('a late alarm changes nothing: an idle sequence must start again', async () => {
    const { ask, clock, instance } = make(oldest());
    clock.alarm = () => () => {};
    void ask(1, 1, START);
    await settled();
    await instance.finish();
    clock.advance(50);
    expect(await ask(1, 2)).toMatchObject(unknown);
    void ask(1, 3, START);
    await settled();
    expect(instance.rows[1]).toMatchObject([{ slot: 0, start: true }]);
  });

  it('a sequence waits for a slot in order, and is not idle meanwhile', async () => {
    const { ask, clock, instance, sequencer } = make(oldest('max_candidate_sequences: 1'));
    void ask(1, 1, START);
    await settled();
    await instance.finish();
    clock.advance(5);
    const waiting = [ask(2, 2, START), ask(3, 3, ONLY), ask(2, 4)];
    await settled();
    expect([sequencer.pending, sequencer.sequences]).toEqual([3, 3]);
    expect(instance.batches).toEqual([[1]]);
    // The sequence with the slot expires, and its slot goes to the one that waits longest.
    clock.advance(10);
    await settled();
    expect(instance.batches).toEqual([[1], [2]]);
    clock.advance(40);
    await instance.finish();
    expect(instance.batches).toEqual([[1], [2], [4]]);
    await instance.finish();
    const last = ask(2, 5, END);
    await settled();
    await instance.finish();
    await instance.finish();
    expect((await Promise.all([...waiting, last])).map(readValue)).toEqual([2, 3, 4, 5]);
  });

  it('A2: a timeout in the backlog ends the whole sequence', async () => {
    const { ask, clock, instance, sequencer } = make(oldest('max_candidate_sequences: 1'));
    void ask(1, 1, START);
    await settled();
    const late = [ask(2, 2, { ...START, timeoutUs: 8 }), ask(2, 3)];
    await settled();
    clock.advance(7);
    expect(sequencer.pending).toBe(2);
    clock.advance(8);
    for (const outcome of await Promise.all(late)) {
      expect(outcome).toMatchObject({ refusal: { code: 'UNAVAILABLE', failure: 'REJECTED' } });
      expect(outcome).toMatchObject(saying('timeout of the corresponding sequence has been expired'));
    }
    expect(await ask(2, 4)).toMatchObject(unknown);
    await instance.finish();
    expect(sequencer.sequences).toBe(1);
  });

  it('A2: such a timeout rings before others become idle', async () => {
    const { ask, clock, instance } = make(oldest('max_candidate_sequences: 1'));
    void ask(1, 1, START);
    await settled();
    await instance.finish();
    const late = ask(2, 2, { ...START, timeoutUs: 3 });
    await settled();
    clock.advance(3);
    expect(readValue(await late)).toBe('REJECTED');
  });

  it('R14: queue time counts from arrival, also behind its own sequence', async () => {
    const { ask, clock, instance } = make(oldest());
    const answers = [ask(1, 1, START), ask(1, 2)];
    await settled();
    clock.advance(7);
    await instance.finish();
    clock.advance(9);
    await instance.finish();
    const queues = (await Promise.all(answers)).map((answer) => answer.ok && answer.value.durations.queue);
    expect(queues).toEqual([0, 7000]);
  });

  it('a network that fails leaves the sequence as it was', async () => {
    const { ask, instance } = make(oldest());
    const unlucky = ask(1, 13, START);
    await settled();
    await instance.finish();
    expect(readValue(await unlucky)).toBe('BACKEND');
    const next = ask(1, 2);
    await settled();
    await instance.finish();
    expect(readValue(await next)).toBe(2);
  });

  it('a failing request does not affect others of its batch', async () => {
    const { ask, instance } = make(oldest());
    const answers = [ask(1, 1, START), ask(2, 13, START), ask(3, 3, START)];
    await settled();
    for (let run = 0; run < 4; run++) await instance.finish();
    expect((await Promise.all(answers)).map(readValue)).toEqual([1, 'BACKEND', 3]);
    expect(instance.rows.slice(1)).toMatchObject([[{ slot: 0 }], [{ slot: 1 }], [{ slot: 2 }]]);
  });

  it('reports a lost state by the error that makes clients restart', async () => {
    const { ask, instance, sequencer } = make(oldest());
    void ask(1, 1, START);
    await settled();
    await instance.finish();
    const answers = [ask(1, 404), ask(1, 5)];
    await settled();
    await instance.finish();
    expect(await answers[0]).toMatchObject(unknown);
    expect(readValue((await answers[1])!)).toBe('CANCELED');
    expect(sequencer.sequences).toBe(0);
  });

  it('a departed request takes later ones along, up to the next START', async () => {
    const { ask, instance, sequencer } = make(oldest());
    const leaves = new AbortController();
    const { signal } = leaves;
    const answers = [ask(1, 1, START), ask(1, 2), ask(1, 3, { signal }), ask(1, 4), ask(1, 5, START), ask(1, 6)];
    await settled();
    leaves.abort();
    for (let run = 0; run < 4; run++) await instance.finish();
    expect((await Promise.all(answers)).map(readValue)).toEqual([1, 2, 'CANCELED', 'CANCELED', 5, 6]);
    expect(sequencer.sequences).toBe(1);
    const gone = new AbortController();
    gone.abort();
    expect(readValue(await ask(1, 7, { signal: gone.signal }))).toBe('CANCELED');
    expect(await ask(1, 8)).toMatchObject(unknown);
    expect([sequencer.sequences, sequencer.pending]).toEqual([0, 0]);
  });

  it('a departure while a batch waits removes its sequence from the batch', async () => {
    const { ask, instance, sequencer } = make(oldest('preferred_batch_size: 2 max_queue_delay_microseconds: 1000000'));
    const leaves = new AbortController();
    const left = ask(1, 1, { ...START, signal: leaves.signal });
    const behind = ask(1, 2);
    await settled();
    expect(sequencer.pending).toBe(2);
    leaves.abort();
    expect([await left, await behind].map(readValue)).toEqual(['CANCELED', 'CANCELED']);
    await settled();
    expect([sequencer.sequences, sequencer.pending]).toEqual([0, 0]);
    const others = [ask(2, 2, ONLY), ask(3, 3, ONLY)];
    await settled();
    expect(instance.batches).toEqual([[2, 3]]);
    await instance.finish();
    expect((await Promise.all(others)).map(readValue)).toEqual([2, 3]);
  });

  it('does not queue without end', async () => {
    const { ask, instance } = make(oldest('max_candidate_sequences: 1'));
    void ask(1, 0, START);
    await settled();
    const queued = Array.from({ length: 1024 }, (_, index) => ask(2 + index, 1, ONLY));
    expect(await ask(1, 2)).toMatchObject(saying('Exceeds maximum queue size'));
    void queued;
    await instance.finish();
  });

  it('direct: sends at once, or waits until enough rows are taken', async () => {
    const eager = make('direct { max_queue_delay_microseconds: 100 }');
    void eager.ask(1, 1, START);
    await settled();
    expect(eager.instance.batches).toEqual([[1]]);

    const { ask, clock, instance } = make(
      'direct { minimum_slot_utilization: 0.5 max_queue_delay_microseconds: 100 } max_sequence_idle_microseconds: 1000',
    );
    void ask(1, 1, START);
    await settled();
    expect(instance.batches).toEqual([]);
    void [ask(2, 2, START), ask(3, 3, START)];
    await settled();
    expect(instance.batches).toEqual([[1, 2, 3]]);
    await instance.finish();
    void ask(2, 4);
    await settled();
    expect(instance.batches).toHaveLength(1);
    clock.advance(101);
    expect(instance.batches).toEqual([[1, 2, 3], [4]]);
  });

  it('close refuses new requests and computes accepted ones, also without a slot', async () => {
    const { ask, clock, instance, sequencer } = make(
      oldest('max_candidate_sequences: 1 preferred_batch_size: 4 max_queue_delay_microseconds: 1000000'),
    );
    const answers = [ask(1, 1, START), ask(1, 2), ask(2, 3, START)];
    await settled();
    const closed = sequencer.close();
    expect(await ask(1, 4)).toMatchObject(saying('being unloaded'));
    await settled();
    for (let run = 0; run < 3; run++) await instance.finish();
    expect((await Promise.all(answers)).map(readValue)).toEqual([1, 2, 3]);
    await closed;
    expect([instance.closed, sequencer.sequences, clock.armed]).toEqual([true, 0, 0]);
  });

  it('closes when only idle sequences are left', async () => {
    const { ask, instance, sequencer } = make(oldest());
    void ask(1, 1, START);
    await settled();
    await instance.finish();
    await sequencer.close();
    expect([instance.closed, sequencer.sequences]).toEqual([true, 0]);
  });
});
