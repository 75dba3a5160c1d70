import { refuse } from '../../../../shared/refusal.ts';
import { no, type Result } from '../../../../shared/result.ts';
import type { Dispatcher } from '../engine/dispatch.ts';
import { Semaphore } from '../engine/semaphore.ts';
import type { SlotRequest } from '../engine/slots.ts';

/**
 * Limits batch work to `most` slots of the engine, so that urgent work finds one free. Batch work that waits does not
 * fill the agent's queue.
 */
export function createShare(dispatcher: Dispatcher, most: number): Pick<Dispatcher, 'run' | 'hold'> {
  const slots = new Semaphore(most);

  async function within<T>(request: SlotRequest, work: () => Promise<Result<T>>): Promise<Result<T>> {
    const leave = await slots.enter(request.signal);
    if (!leave) return no(refuse('deadline_passed', undefined, 'given up while queued'));
    try {
      return await work();
    } finally {
      leave();
    }
  }

  return {
    run: (task) => within(task, () => dispatcher.run(task)),
    hold: (request, work) => within(request, () => dispatcher.hold(request, work)),
  };
}
