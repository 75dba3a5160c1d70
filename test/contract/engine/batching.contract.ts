import { describe, expect, it } from 'vitest';
import { batchCounts, floats, infer, metric, row, statistics, untilPending, whileBusy } from './client.ts';
import type { Contract } from './implementation.ts';

export const batchingContract: Contract = (_implementation, engine) =>
  describe('dynamic batching', () => {
    it('A1: a batch runs as one execution at the preferred size', async () => {
      const before = await batchCounts(engine(), 'full_batches');
      const answers = await Promise.all(
        [1, 2, 3, 4].map((value) => infer(engine(), 'full_batches', [row('X', value)])),
      );
      expect(answers.map((answer) => floats(answer, 'Y'))).toEqual([[1], [2], [3], [4]]);
      const after = await batchCounts(engine(), 'full_batches');
      expect(after[4]).toBe((before[4] ?? 0) + 1);
      expect(await metric(engine(), 'nv_inference_exec_count', { model: 'full_batches' })).toBeGreaterThan(0);
    });

    it('A1: a request that brings several items counts with all of them', async () => {
      const before = await batchCounts(engine(), 'full_batches');
      const pair = {
        name: 'X',
        datatype: 'FP32' as const,
        shape: [2, 1],
        bytes: new Uint8Array(Float32Array.of(1, 2).buffer),
      };
      const answers = await Promise.all([
        infer(engine(), 'full_batches', [pair]),
        infer(engine(), 'full_batches', [pair]),
      ]);
      expect(answers.map((answer) => floats(answer, 'Y'))).toEqual([
        [1, 2],
        [1, 2],
      ]);
      expect((await batchCounts(engine(), 'full_batches'))[4]).toBe((before[4] ?? 0) + 1);
    });

    it('A1: requests of another shape end the batch before them', async () => {
      const before = await batchCounts(engine(), 'full_batches');
      const short = [1, 2].map((value) => infer(engine(), 'full_batches', [row('X', value)]));
      await untilPending(engine(), 'full_batches', 2);
      const long = [infer(engine(), 'full_batches', [row('X', 3, 3)])];
      expect((await Promise.all(short)).map((answer) => floats(answer, 'Y'))).toEqual([[1], [2]]);
      await untilPending(engine(), 'full_batches', 1);
      for (const value of [4, 5, 6]) long.push(infer(engine(), 'full_batches', [row('X', value, value)]));
      expect((await Promise.all(long)).map((answer) => floats(answer, 'Y'))).toEqual([
        [3, 3],
        [4, 4],
        [5, 5],
        [6, 6],
      ]);
      const after = await batchCounts(engine(), 'full_batches');
      expect([after[2], after[4]]).toEqual([(before[2] ?? 0) + 1, (before[4] ?? 0) + 1]);
    });

    it('A1: requests that wait for a busy instance run together', async () => {
      const queued = await whileBusy(engine(), 'slow', async () => {
        const before = (await statistics(engine(), 'slow')).execution_count;
        const answers = [1, 2, 3, 4, 5].map((value) => infer(engine(), 'slow', [row('X', value)]));
        await untilPending(engine(), 'slow', 5);
        return { before, answers };
      });
      expect((await Promise.all(queued.answers)).map((answer) => floats(answer, 'Y'))).toEqual([
        [1],
        [2],
        [3],
        [4],
        [5],
      ]);
      expect((await statistics(engine(), 'slow')).execution_count).toBe(queued.before + 2);
    });

    it('A1: ragged requests share one execution and keep their own results', async () => {
      const inputs = [[1], [10, 20], [100, 200, 300, 400]];
      const alone: number[][] = [];
      for (const values of inputs)
        alone.push(floats(await infer(engine(), 'ragged_alone', [row('X', ...values)]), 'SUM'));
      const before = await batchCounts(engine(), 'ragged');
      const together = await Promise.all(inputs.map((values) => infer(engine(), 'ragged', [row('X', ...values)])));
      expect(together.map((answer) => floats(answer, 'SUM'))).toEqual(alone);
      expect(alone).toEqual([[1], [30], [1000]]);
      expect((await batchCounts(engine(), 'ragged'))[3]).toBe((before[3] ?? 0) + 1);
    });
  });
