import { parentPort, workerData } from 'node:worker_threads';
import * as ort from 'onnxruntime-node';
import type { FromThread, Run, ThreadData, ToThread } from './instance-messages.ts';
import { fromOrt, fromOrtType, toOrt } from './ort-tensor.ts';
import { LostState, States } from './states.ts';

/**
 * One model instance in a thread of its own. ONNX Runtime's `run` blocks its thread despite its promise, so
 * that thread must not be the one that serves HTTP.
 */
const port = parentPort!;
const { modelPath, intraThreads, interThreads, batched, states: infos } = workerData as ThreadData;
const states = new States(infos, batched);
const post = (message: FromThread, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer);
const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

const describe = (list: readonly ort.InferenceSession.ValueMetadata[]) =>
  list.map((value) => {
    const datatype = value.isTensor ? fromOrtType(value.type) : undefined;
    if (!value.isTensor || !datatype) throw new Error(`'${value.name}' is not a tensor of a supported type`);
    return { name: value.name, datatype, dims: value.shape.map((dim) => (typeof dim === 'number' ? dim : -1)) };
  });

async function run(session: ort.InferenceSession, { inputs, outputs, rows }: Run) {
  const feeds = { ...Object.fromEntries(inputs.map((tensor) => [tensor.name, toOrt(tensor)])), ...states.gather(rows) };
  const started = process.hrtime.bigint();
  const results = await session.run(feeds, [...new Set([...outputs, ...states.outputs])]);
  const inferNs = Number(process.hrtime.bigint() - started);
  states.keep(rows, results);
  const tensors = outputs.map((name) => {
    const value = results[name];
    if (!value) throw new Error(`the model gave no output '${name}'`);
    return fromOrt(name, value as ort.Tensor);
  });
  post({ done: { tensors, inferNs } }, [...new Set(tensors.map(({ bytes }) => bytes.buffer as ArrayBuffer))]);
}

try {
  const session = await ort.InferenceSession.create(modelPath, {
    executionProviders: ['cpu'],
    intraOpNumThreads: intraThreads,
    interOpNumThreads: interThreads,
    // Two engines may share two cores: waiting threads must sleep, not spin.
    extra: { session: { intra_op: { allow_spinning: '0' }, inter_op: { allow_spinning: '0' } } },
  });
  port.on('message', (message: ToThread) => {
    if ('close' in message) {
      // The thread ends once its port is closed; terminating it inside a run would abort the whole process.
      void session.release().finally(() => port.close());
      return;
    }
    if ('forget' in message) {
      states.forget(message.forget);
      return;
    }
    run(session, message.run).catch((error) =>
      post({ failed: reasonOf(error), ...(error instanceof LostState && { lost: true }) }),
    );
  });
  const { heapTotal, external } = process.memoryUsage();
  post({
    ready: { inputs: describe(session.inputMetadata), outputs: describe(session.outputMetadata) },
    heapBytes: heapTotal + external,
  });
} catch (error) {
  post({ failed: reasonOf(error) });
  port.close();
}
