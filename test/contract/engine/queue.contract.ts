import { describe, expect, it } from 'vitest';
import { askInfer, counter, errorOf, pending, post, type Reply, row, untilPending, whileBusy } from './client.ts';
import { type Contract, differing, type Running } from './implementation.ts';

/**
 * Queues requests one after the other, so that their order of arrival is known, and records the order of
 * answers.
 */
async function lineUp(
  engine: Running,
  model: string,
  wishes: { called: string; parameters: Record<string, number> }[],
  {
    /** Model whose queue holds them: a step's, for requests to an ensemble. */
    queue = model,
    ask = (parameters: Record<string, number>) => askInfer(engine, model, [row('X', 1)], { parameters }),
  } = {},
) {
  const finished: string[] = [];
  const replies: Promise<Reply>[] = [];
  const standing = await pending(engine, queue);
  for (const [index, { called, parameters }] of wishes.entries()) {
    const reply = ask(parameters);
    replies.push(reply);
    void reply.then(() => finished.push(called));
    await untilPending(engine, queue, standing + index + 1);
  }
  return { finished, replies };
}

const high = { priority: 1 };
const low = { priority: 2 };

export const queueContract: Contract = (implementation, engine) =>
  describe('priorities and queue policy', () => {
    it.each([
      ['of a model', 'slow_priority'],
      ['A18: through an ensemble', 'whole_priority'],
    ])(
      'A2: high priority overtakes earlier requests; an unknown one becomes the default, the last (%s)',
      async (_, model) => {
        const wishes = [
          { called: 'low 1', parameters: low },
          { called: 'low 2', parameters: {} },
          { called: 'nowhere', parameters: { priority: 9 } },
          { called: 'far away', parameters: { priority: Number.MAX_SAFE_INTEGER } },
          { called: 'high', parameters: high },
        ];
        const line = await whileBusy(engine(), 'slow_priority', () =>
          lineUp(engine(), model, wishes, { queue: 'slow_priority' }),
        );
        expect((await Promise.all(line.replies)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
        expect(line.finished).toEqual(['high', 'low 1', 'low 2', 'nowhere', 'far away']);
      },
    );

    const generated = 'A2: the priority of a generate request counts';
    differing(implementation, 'generateParameters', generated, async (expected) => {
      const ask = (parameters: object) => post(engine(), '/v2/models/slow_priority/generate', { X: 1, parameters });
      const line = await whileBusy(engine(), 'slow_priority', () =>
        lineUp(
          engine(),
          'slow_priority',
          [
            { called: 'low', parameters: low },
            { called: 'high', parameters: high },
          ],
          { ask },
        ),
      );
      expect((await Promise.all(line.replies)).map(({ status }) => status)).toEqual([200, 200]);
      expect(line.finished).toEqual(expected === 'understood' ? ['high', 'low'] : ['low', 'high']);
    });

    const full = 'A2: a full level refuses with 503 and counts a rejection; other levels still take requests';
    differing(implementation, 'rejection', full, async (expected) => {
      const labels = { model: 'slow_priority', reason: 'REJECTED' };
      const rejected = await counter(engine(), 'nv_inference_request_failure', labels);
      const { line, refused } = await whileBusy(engine(), 'slow_priority', async () => {
        const standing = await lineUp(engine(), 'slow_priority', [
          { called: 'high 1', parameters: high },
          { called: 'high 2', parameters: high },
          { called: 'low', parameters: low },
        ]);
        return {
          line: standing,
          refused: await askInfer(engine(), 'slow_priority', [row('X', 1)], { parameters: high }),
        };
      });
      expect(refused.status).toBe(503);
      expect(errorOf(refused)).toContain('Exceeds maximum queue size');
      expect((await Promise.all(line.replies)).map(({ status }) => status)).toEqual([200, 200, 200]);
      const counted = (await counter(engine(), 'nv_inference_request_failure', labels)) - rejected;
      if (expected === 'counted') expect(counted).toBeGreaterThan(0);
      else expect(counted).toBe(0);
    });

    it.each([
      ['of a model', 'slow_timeout'],
      ['A18: through an ensemble', 'whole_timeout'],
    ])('A2: REJECT drops an overdue request (%s)', async (_, model) => {
      const { replies } = await whileBusy(engine(), 'slow_timeout', async () => {
        const reply = askInfer(engine(), model, [row('X', 1)], { parameters: { timeout: 1_000 } });
        // The machine's speed decides whether the request is still waiting here, but not how it ends.
        await untilPending(engine(), 'slow_timeout', 0);
        return { replies: [reply] };
      });
      const [reply] = await Promise.all(replies);
      expect(reply?.status).toBe(503);
      expect(errorOf(reply!)).toContain('Request timeout expired');
    });

    const delay = 'A2: DELAY lets requests that are in time go first, and still serves the late one';
    differing(implementation, 'lateness', delay, async (expected) => {
      const line = await whileBusy(engine(), 'slow_delay', () =>
        lineUp(engine(), 'slow_delay', [
          { called: 'late', parameters: { timeout: 1 } },
          { called: 'in time', parameters: {} },
        ]),
      );
      expect((await Promise.all(line.replies)).map(({ status }) => status)).toEqual([200, 200]);
      if (expected === 'at once') expect(line.finished).toEqual(['in time', 'late']);
      // `whenever`: a request not yet known to be overdue still goes first.
      else expect(line.finished.toSorted()).toEqual(['in time', 'late']);
    });
  });
