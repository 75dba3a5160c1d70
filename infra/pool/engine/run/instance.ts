import { type Fault, fault, type Read } from '../../../../shared/kserve/fault.ts';
import type { Tensor } from '../../../../shared/kserve/tensor.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { Executed, ModelInfo, StateRow, ThreadData } from './instance-messages.ts';
import { startThread } from './thread.ts';

/** `lost`: the sequence's state was lost with a dead thread; the sequence has to begin again. */
export type RunFault = Fault & { readonly lost?: boolean };

/** A loaded copy of a model that runs one batch at a time. */
export interface Instance {
  readonly info: ModelInfo;
  /** JavaScript heap and buffers of its thread after the load; ONNX Runtime's memory is not among them. */
  readonly heapBytes: number;
  /**
   * Runs a batch. The memory of `inputs` moves to the instance and must not be used afterwards. `rows` name
   * the states of the batch's items, which are updated only when the run succeeds.
   */
  run(
    inputs: readonly Tensor[],
    outputs: readonly string[],
    rows: readonly StateRow[],
  ): Promise<Result<Executed, RunFault>>;
  /** Drops the states of sequences that ended without their last request. */
  forget(slots: readonly number[]): void;
  /** Closes the instance after the running batch. */
  close(): Promise<void>;
}

/** Loads the model. A dying thread fails its batch and is restarted for the next one. */
export async function openInstance(data: ThreadData): Promise<Read<Instance>> {
  const first = await startThread(data);
  if (typeof first === 'string') return fault(first);
  let thread = first;
  let running: Promise<unknown> = Promise.resolve();

  async function run(
    inputs: readonly Tensor[],
    outputs: readonly string[],
    rows: readonly StateRow[],
  ): Promise<Result<Executed, RunFault>> {
    if (!thread.alive) {
      const next = await startThread(data);
      if (typeof next === 'string') return fault(next);
      thread = next;
    }
    const memory = new Set(inputs.map(({ bytes }) => bytes.buffer as ArrayBuffer));
    const answer = await thread.request({ run: { inputs, outputs, rows } }, [...memory]);
    if ('done' in answer) return ok(answer.done);
    if (!('failed' in answer)) return fault('out of turn');
    return no({ reason: answer.failed, ...(answer.lost && { lost: true }) });
  }

  return ok({
    info: first.info,
    heapBytes: first.heapBytes,
    forget: (slots) => thread.send({ forget: slots }),
    run(inputs, outputs, rows) {
      const answer = run(inputs, outputs, rows);
      running = answer;
      return answer;
    },
    async close() {
      await running;
      await thread.close();
    },
  });
}
