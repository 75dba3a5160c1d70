import { Worker } from 'node:worker_threads';
import type { FromThread, ModelInfo, ThreadData, ToThread } from './instance-messages.ts';

/** A worker thread that answers one message at a time. After its end every request fails with the reason. */
export interface Thread {
  readonly info: ModelInfo;
  /** JavaScript heap and buffers of the thread after the load. */
  readonly heapBytes: number;
  readonly alive: boolean;
  request(message: ToThread, transfer: ArrayBuffer[]): Promise<FromThread>;
  /** Sends a message without an answer. */
  send(message: ToThread): void;
  close(): Promise<void>;
}

/**
 * ONNX Runtime for Linux reports names and hashes of models to its vendor unless this is set before it is loaded
 * (https://github.com/microsoft/onnxruntime/blob/main/docs/Privacy.md).
 */
process.env.ORT_DISABLE_TELEMETRY = '1';

/** Starts the thread and loads the model; a string is the reason of a failure. */
export async function startThread(data: ThreadData): Promise<Thread | string> {
  const worker = new Worker(new URL('./instance-thread.ts', import.meta.url), { workerData: data });
  let waiting: ((message: FromThread) => void) | undefined;
  let dead: string | undefined;
  const settle = (message: FromThread) => {
    waiting?.(message);
    waiting = undefined;
  };
  const die = (reason: string) => {
    dead ??= reason;
    settle({ failed: dead });
  };
  const next = (): Promise<FromThread> =>
    dead === undefined
      ? new Promise((resolve) => {
          waiting = resolve;
        })
      : Promise.resolve({ failed: dead });
  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  worker.on('message', settle);
  worker.on('error', (error) => die(`the instance failed: ${error.message}`));
  worker.on('exit', () => die('the instance is gone'));

  const opened = await next();
  if (!('ready' in opened)) return 'failed' in opened ? opened.failed : 'the instance did not start';
  return {
    info: opened.ready,
    heapBytes: opened.heapBytes,
    get alive() {
      return dead === undefined;
    },
    request(message, transfer) {
      const answer = next();
      if (dead === undefined) worker.postMessage(message, transfer);
      return answer;
    },
    send(message) {
      if (dead === undefined) worker.postMessage(message);
    },
    async close() {
      if (dead === undefined) worker.postMessage({ close: true } satisfies ToThread);
      await ended;
    },
  };
}
