import { describe, expect, it } from 'vitest';
import { askInfer, eventually, metric, row, statistics, untilPending, whileBusy } from './client.ts';
import type { Contract } from './implementation.ts';

export const cancellationContract: Contract = (_implementation, engine) =>
  describe('cancellation', () => {
    it('a client that goes away takes its waiting request with it, and only that one', async () => {
      const labels = { model: 'slow_timeout', reason: 'CANCELED' };
      const cancelled = await metric(engine(), 'nv_inference_request_failure', labels);
      const { stays, before } = await whileBusy(engine(), 'slow_timeout', async () => {
        const counted = (await statistics(engine(), 'slow_timeout')).inference_count;
        const leaving = new AbortController();
        const left = askInfer(engine(), 'slow_timeout', [row('X', 1)], { signal: leaving.signal }).catch(() => 'gone');
        await untilPending(engine(), 'slow_timeout', 1);
        const kept = askInfer(engine(), 'slow_timeout', [row('X', 2)]);
        await untilPending(engine(), 'slow_timeout', 2);
        leaving.abort();
        expect(await left).toBe('gone');
        return { stays: [kept], before: counted };
      });
      expect((await stays[0]!).status).toBe(200);
      await eventually(
        () => metric(engine(), 'nv_inference_request_failure', labels),
        (seen) => seen > cancelled,
      );
      // The blocker and the one that stayed.
      expect((await statistics(engine(), 'slow_timeout')).inference_count).toBe(before + 2);
    });
  });
