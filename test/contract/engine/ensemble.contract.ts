import { describe, expect, it } from 'vitest';
import { askInfer, counter, errorOf, floats, infer, row, statistics } from './client.ts';
import type { Contract } from './implementation.ts';

const inputs = [row('P', 1, 2), row('Q', 10, 20)];

export const ensembleContract: Contract = (_implementation, engine) =>
  describe('ensembles', () => {
    it('A18: steps run in the order of data, not of the file', async () => {
      const answer = await infer(engine(), 'twice', inputs);
      expect(answer.model).toBe('twice');
      expect(floats(answer, 'TOTAL')).toEqual([21, 42]);
      expect(floats(answer, 'FIRST_DIFFERENCE')).toEqual([-9, -18]);
    });

    it('A18: steps count their own work, the ensemble its own requests', async () => {
      const before = await statistics(engine(), 'add');
      const whole = await counter(engine(), 'nv_inference_request_success', { model: 'twice' });
      await infer(engine(), 'twice', inputs);
      const after = await statistics(engine(), 'add');
      expect(after.inference_count - before.inference_count).toBe(2);
      expect(await counter(engine(), 'nv_inference_request_success', { model: 'twice' })).toBe(whole + 1);
    });

    it('R14: the step counts how long was waited, the ensemble does not', async () => {
      const waited = async (model: string) => (await statistics(engine(), model)).inference_stats.queue;
      const models = ['whole_priority', 'slow_priority'];
      const before = await Promise.all(models.map(waited));
      // One instance serves one request at a time: the last waits for all others.
      await Promise.all([1, 2, 3, 4].map(() => infer(engine(), 'whole_priority', [row('X', 10_000)])));
      const after = await Promise.all(models.map(waited));
      const [whole, step] = after.map(({ count, ns }, at) => [count - before[at]!.count, ns - before[at]!.ns]);
      expect([whole![0], step![0]]).toEqual([4, 4]);
      expect(2 * whole![1]!).toBeLessThan(step![1]!);
    });

    it('A18: a batch travels through all steps', async () => {
      const pair = (name: string, values: number[]) => ({
        name,
        datatype: 'FP32' as const,
        shape: [2, 1],
        bytes: new Uint8Array(Float32Array.from(values).buffer),
      });
      const answer = await infer(engine(), 'twice', [pair('P', [1, 2]), pair('Q', [10, 20])]);
      expect(answer.outputs.map(({ shape }) => shape)).toEqual([
        [2, 1],
        [2, 1],
      ]);
      expect(floats(answer, 'TOTAL')).toEqual([21, 42]);
    });

    it('A18: refuses a request that a step cannot take, with a reason', async () => {
      const reply = await askInfer(engine(), 'twice', [row('P', 1, 2, 3), row('Q', 1, 2)]);
      expect(reply.status).toBeGreaterThanOrEqual(400);
      expect(errorOf(reply)).not.toBe('');
    });
  });
