// Engine of the agent's half, a process of its own: a KServe v2 server that answers every step of every
// sequence after a fixed time, with the reference network's recorded output for the clip.
import type { AddressInfo } from 'node:net';
import process from 'node:process';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { encodeInferResponse } from '../../../shared/kserve/infer-response.ts';
import { fp32Tensor, int32Tensor } from '../../../shared/kserve/tensor.ts';
import { createPlainServer, type Serve } from '../front/plain-http.ts';
import { ENGINE_MS, HOP_FRAMES } from './traffic.ts';

export interface EngineOrder {
  /** Log probabilities of the clip, frame after frame, and how many there are in one. */
  readonly logProbs: number[];
  readonly tokens: number;
  /** Threads that share the port. */
  readonly threads: number;
}

/** Order of one thread; all count steps in `steps`. */
interface ThreadOrder extends EngineOrder {
  readonly port: number;
  readonly steps: SharedArrayBuffer;
}

/** Counters of sequences; consecutive ids rarely collide. */
const SEQUENCES = 2 ** 25;

const tensor = (name: string, datatype: string, shape: number[]) => ({ name, datatype, shape });
const MODELS = new Set(['reference-en', 'reference-en-stream']);
/** Samples of a frame, and those at the edge of a window that make no frame of their own. */
const FRAME_SAMPLES = 640;
const EDGE_SAMPLES = 240;

let clip = new Float32Array();
let tokens = 1;
/** Steps that each sequence has made, of all threads. */
let steps: Int16Array = new Int16Array();
let inferences = 0;

const reply = (status: number, headers: string, body: Buffer) =>
  Buffer.concat([Buffer.from(`HTTP/1.1 ${status} OK\r\n${headers}content-length: ${body.length}\r\n\r\n`), body]);
const json = (value: unknown) => reply(200, 'content-type: application/json\r\n', Buffer.from(JSON.stringify(value)));

const bodies = new Map<string, Buffer>();

/** Frames of the clip from `step` on; behind its end there is what its last frame says, which is silence. */
function answer(step: number, frames: number): Buffer {
  const key = `${step} ${frames}`;
  const known = bodies.get(key);
  if (known) return known;
  const logProbs = new Float32Array(frames * tokens);
  const last = clip.length / tokens - 1;
  for (let frame = 0; frame < frames; frame += 1) {
    const from = Math.min(last, step * HOP_FRAMES + frame) * tokens;
    logProbs.set(clip.subarray(from, from + tokens), frame * tokens);
  }
  const outputs = [
    fp32Tensor('LOG_PROBS', logProbs, [1, frames, tokens]),
    int32Tensor('FRAMES', Int32Array.of(frames), [1, 1]),
  ];
  const encoded = encodeInferResponse({ model: 'reference-en-stream', version: '1', outputs }, () => true);
  if (!encoded.ok) throw new Error(encoded.refusal.reason);
  const headers = Object.entries(encoded.value.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const body = reply(
    200,
    headers.filter((line) => !/^content-length/i.test(line)).join(''),
    Buffer.concat(encoded.value.chunks),
  );
  bodies.set(key, body);
  return body;
}

function infer(message: string): Buffer {
  const said = JSON.parse(message) as {
    inputs: { name: string; shape: number[] }[];
    parameters?: { sequence_id?: string | number; sequence_start?: boolean; sequence_end?: boolean };
  };
  const { sequence_id: id = '', sequence_start: start, sequence_end: end } = said.parameters ?? {};
  const samples = said.inputs.find(({ name }) => name === 'AUDIO')?.shape.at(-1) ?? 0;
  const place = Number(id) % SEQUENCES;
  const step = start ? 0 : Atomics.load(steps, place);
  Atomics.store(steps, place, end ? 0 : step + 1);
  inferences += 1;
  return answer(step, Math.max(0, Math.round((samples - EDGE_SAMPLES) / FRAME_SAMPLES)));
}

const serve: Serve = ({ head, send }) => {
  const [, , path = ''] = /^(\w+) (\S+)/.exec(head) ?? [];
  const [, model = '', verb = ''] = /^\/v2\/models\/([^/]+)\/?(\w*)/.exec(path) ?? [];
  // The content of the tensors does not matter here.
  let left = Number(/\r\ninference-header-content-length: *(\d+)/i.exec(head)?.[1] ?? Number.POSITIVE_INFINITY);
  let message = '';
  return {
    bytes(chunk) {
      if (left > 0) message += chunk.toString('latin1', 0, Math.min(left, chunk.length));
      left -= chunk.length;
    },
    end() {
      if (verb === 'infer') return void setTimeout(() => send(infer(message)), ENGINE_MS);
      if (path.startsWith('/v2/health')) return send(json({}));
      if (!MODELS.has(model)) return send(reply(404, '', Buffer.from('{"error":"unknown model"}')));
      if (verb === 'ready') return send(json({}));
      if (verb === 'config') return send(json({}));
      if (verb === 'stats') return send(json(statistics(model)));
      send(json(metadata(model)));
    },
  };
};

const metadata = (name: string) => ({
  name,
  versions: ['1'],
  platform: 'ensemble',
  inputs: [tensor('AUDIO', 'FP32', [-1, -1]), tensor('AUDIO_LENGTH', 'INT32', [-1, 1])],
  outputs: [tensor('LOG_PROBS', 'FP32', [-1, -1, tokens]), tensor('FRAMES', 'INT32', [-1, 1])],
});

function statistics(name: string) {
  const duration = { count: inferences, ns: inferences * ENGINE_MS * 1e6 };
  const names = ['success', 'fail', 'queue', 'compute_input', 'compute_infer', 'compute_output'];
  const stats = Object.fromEntries(names.map((one) => [one, duration]));
  const counts = { last_inference: 0, inference_count: inferences, execution_count: inferences };
  return { model_stats: [{ name, version: '1', ...counts, inference_stats: stats, batch_stats: [] }] };
}

/** Listens on the port of the order, which other threads have as well; 0 takes a free one. */
function listen(order: ThreadOrder, listening: (port: number) => void): void {
  clip = Float32Array.from(order.logProbs);
  tokens = order.tokens;
  steps = new Int16Array(order.steps);
  const server = createPlainServer(serve);
  server.listen({ port: order.port, host: '127.0.0.1', reusePort: order.threads > 1 }, () =>
    listening((server.address() as AddressInfo).port),
  );
}

function startThread(order: ThreadOrder): Promise<void> {
  const thread = new Worker(new URL(import.meta.url), { workerData: order });
  return new Promise((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
  });
}

if (isMainThread) {
  process.on('message', (order: EngineOrder) => {
    const shared = { ...order, steps: new SharedArrayBuffer(2 * SEQUENCES) };
    listen({ ...shared, port: 0 }, async (port) => {
      await Promise.all(Array.from({ length: order.threads - 1 }, () => startThread({ ...shared, port })));
      process.send?.({ port });
    });
  });
  process.on('disconnect', () => process.exit(0));
} else listen(workerData as ThreadOrder, () => parentPort?.postMessage('listens'));
