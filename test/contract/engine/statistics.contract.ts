import { describe, expect, it } from 'vitest';
import { statisticsMessage } from '../../../shared/kserve/statistics.ts';
import { askInfer, counter, get, infer, jsonOf, row, statistics } from './client.ts';
import type { Contract } from './implementation.ts';

const inputs = [row('A', 1), row('B', 2)];

export const statisticsContract: Contract = (_implementation, engine) =>
  describe('statistics and metrics', () => {
    it('R14: a success counts once in requests, inferences, executions and every duration', async () => {
      const before = await statistics(engine(), 'add');
      await infer(engine(), 'add', inputs);
      const after = await statistics(engine(), 'add');
      expect(after.inference_count - before.inference_count).toBe(1);
      expect(after.execution_count - before.execution_count).toBe(1);
      for (const stage of ['success', 'queue', 'compute_input', 'compute_infer', 'compute_output'] as const) {
        expect(after.inference_stats[stage].count - before.inference_stats[stage].count, stage).toBe(1);
        expect(after.inference_stats[stage].ns, stage).toBeGreaterThanOrEqual(before.inference_stats[stage].ns);
      }
      expect(after.inference_stats.compute_infer.ns).toBeGreaterThan(before.inference_stats.compute_infer.ns);
      expect(after.last_inference).toBeGreaterThan(0);
    });

    it('R14: the metrics page has Triton’s names and agrees with the statistics', async () => {
      await infer(engine(), 'add', inputs);
      const { inference_count, execution_count, inference_stats } = await statistics(engine(), 'add');
      const labels = { model: 'add', version: '1' };
      expect(await counter(engine(), 'nv_inference_request_success', labels)).toBe(inference_stats.success.count);
      expect(await counter(engine(), 'nv_inference_count', labels)).toBe(inference_count);
      expect(await counter(engine(), 'nv_inference_exec_count', labels)).toBe(execution_count);
      for (const stage of ['request', 'queue', 'compute_input', 'compute_infer', 'compute_output']) {
        expect(await counter(engine(), `nv_inference_${stage}_duration_us`, labels), stage).toBeGreaterThanOrEqual(0);
      }
      expect(await counter(engine(), 'nv_inference_request_duration_us', labels)).toBeGreaterThan(0);
      expect(await counter(engine(), 'nv_inference_pending_request_count', labels)).toBe(0);
    });

    it('R14: a misfit request counts as neither success nor inference', async () => {
      const before = await statistics(engine(), 'add');
      expect((await askInfer(engine(), 'add', [row('A', 1)])).status).toBeGreaterThanOrEqual(400);
      const after = await statistics(engine(), 'add');
      expect(after.inference_stats.success.count).toBe(before.inference_stats.success.count);
      expect(after.inference_count).toBe(before.inference_count);
    });

    it('R14: one address gives the statistics of all models', async () => {
      const { model_stats: all } = statisticsMessage.parse(jsonOf(await get(engine(), '/v2/models/stats')));
      expect(all.map(({ name }) => name)).toEqual(expect.arrayContaining(['add', 'twice', 'ragged']));
    });
  });
