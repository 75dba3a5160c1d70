import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import type { Tensor } from '../../../../shared/kserve/tensor.ts';
import { ok } from '../../../../shared/result.ts';
import type { Executed, ModelInfo, ThreadData } from './instance-messages.ts';
import { startThread } from './thread.ts';

/** A loaded copy of a model that runs one batch at a time. */
export interface Instance {
  readonly info: ModelInfo;
  /** The memory of `inputs` moves to the instance and must not be used afterwards. */
  run(inputs: readonly Tensor[], outputs: readonly string[]): Promise<Read<Executed>>;
  /** Waits for a running batch. */
  close(): Promise<void>;
}

/** Loads the model. A thread that dies fails the batch it had and is started again for the next one. */
export async function openInstance(data: ThreadData): Promise<Read<Instance>> {
  const first = await startThread(data);
  if (typeof first === 'string') return fault(first);
  let thread = first;
  let running: Promise<unknown> = Promise.resolve();

  async function run(inputs: readonly Tensor[], outputs: readonly string[]): Promise<Read<Executed>> {
    if (!thread.alive) {
      const next = await startThread(data);
      if (typeof next === 'string') return fault(next);
      thread = next;
    }
    const memory = new Set(inputs.map(({ bytes }) => bytes.buffer as ArrayBuffer));
    const answer = await thread.ask({ run: { inputs, outputs } }, [...memory]);
    return 'done' in answer ? ok(answer.done) : fault('failed' in answer ? answer.failed : 'out of turn');
  }

  return ok({
    info: first.info,
    run(inputs, outputs) {
      const asked = run(inputs, outputs);
      running = asked;
      return asked;
    },
    async close() {
      await running;
      await thread.close();
    },
  });
}
