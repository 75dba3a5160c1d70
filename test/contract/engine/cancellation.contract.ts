import { describe, expect } from 'vitest';
import { askInfer, eventually, metric, row, statistics, untilPending, whileBusy } from './client.ts';
import { type Contract, differing } from './implementation.ts';

export const cancellationContract: Contract = (implementation, engine) =>
  describe('cancellation', () => {
    const name = 'a client that goes away takes its waiting request with it, and only that one';
    differing(implementation, 'abandoned', name, async (expected) => {
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
      // Served: the blocker and the request that stayed, and a departure that the engine could not notice.
      const served = expected === 'dropped' ? 2 : 3;
      await eventually(
        async () => [
          (await metric(engine(), 'nv_inference_request_failure', labels)) - cancelled,
          (await statistics(engine(), 'slow_timeout')).inference_count - before,
        ],
        ([dropped, counted]) => dropped === 3 - served && counted === served,
      );
    });
  });
