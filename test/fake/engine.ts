import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeInferRequest } from '../../shared/kserve/infer-request.ts';
import { encodeInferResponse } from '../../shared/kserve/infer-response.ts';
import { fp32Tensor, int32Tensor } from '../../shared/kserve/tensor.ts';
import { joinChunks } from '../shared/kserve/made.ts';

/** Token table of the test model: blank, word boundary, then letters. */
export const tokens = ['', ' ', ...'abcdefghijklmnopqrstuvwxyz', "'"];

/** Log probabilities that a best-path decoder reads as `text`: each letter one frame, a blank between two. */
export function spell(text: string): { logProbs: Float32Array; frames: number } {
  const path = [0, ...[...text].flatMap((letter) => [tokens.indexOf(letter), 0])];
  const logProbs = new Float32Array(path.length * tokens.length).fill(-10);
  path.forEach((token, frame) => {
    logProbs[frame * tokens.length + token] = -0.01;
  });
  return { logProbs, frames: path.length };
}

export interface Seen {
  readonly samples: Float32Array;
  readonly parameters: Record<string, unknown>;
  readonly traceparent: string | undefined;
}

/** An engine that says what it is told to say. */
export interface FakeEngine {
  readonly url: string;
  /** Every inference asked for, in order. */
  readonly seen: Seen[];
  /** Text of each utterance by its number; the default says "hello". */
  say: (utterance: number) => string;
  /** Status of the next answers; they are used up one by one. */
  failures: number[];
  ready: boolean;
  /** Entries of its repository's index; absent, it has none. */
  index: readonly object[] | undefined;
  /** While set, inferences wait for it. */
  gate: Promise<void> | undefined;
  /** Holds single utterances back, by their number. */
  hold: (utterance: number) => Promise<void> | undefined;
  /** Connections whose client went away before the answer. */
  dropped: number;
  stop(): Promise<void>;
}

const tensor = (name: string, datatype: string, shape: number[]) => ({ name, datatype, shape });
const metadata = {
  name: 'test-en',
  versions: ['1'],
  platform: 'ensemble',
  inputs: [tensor('AUDIO', 'FP32', [-1, -1]), tensor('AUDIO_LENGTH', 'INT32', [-1, 1])],
  outputs: [tensor('LOG_PROBS', 'FP32', [-1, -1, tokens.length]), tensor('FRAMES', 'INT32', [-1, 1])],
};

function statistics(count: number) {
  const duration = { count, ns: count * 1_000_000 };
  const names = ['success', 'fail', 'queue', 'compute_input', 'compute_infer', 'compute_output'];
  const inference = Object.fromEntries(names.map((name) => [name, duration]));
  const counts = { last_inference: 0, inference_count: count, execution_count: count };
  const model = { name: 'test-en', version: '1', ...counts, inference_stats: inference, batch_stats: [] };
  return { model_stats: [model] };
}

function answerJson(response: ServerResponse, value: unknown) {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

export async function startFakeEngine(): Promise<FakeEngine> {
  const double = {
    seen: [] as Seen[],
    say: () => 'hello',
    failures: [] as number[],
    ready: true,
    index: undefined,
    gate: undefined as Promise<void> | undefined,
    hold: () => undefined,
    dropped: 0,
  } as unknown as FakeEngine & { url: string };

  const server: Server = createServer(async (incoming, response) => {
    const path = incoming.url ?? '';
    if (path === '/v2/models/test-en') return answerJson(response, metadata);
    if (path === '/v2/models/test-en/config') return answerJson(response, { dynamic_batching: { priority_levels: 4 } });
    if (path === '/v2/models/test-en/stats') return answerJson(response, statistics(double.seen.length));
    if (path === '/v2/repository/index' && double.index) return answerJson(response, double.index);
    if (!path.endsWith('/infer')) {
      response.writeHead(double.ready ? 200 : 400).end();
      return;
    }
    response.on('close', () => {
      if (!response.writableFinished) double.dropped++;
    });
    const parts: Buffer[] = [];
    try {
      for await (const part of incoming) parts.push(part);
    } catch {
      // The agent hung up before it had sent everything.
      return;
    }
    const request = decodeInferRequest(
      Buffer.concat(parts),
      incoming.headers['inference-header-content-length'] as string | undefined,
    );
    if (!request.ok) throw new Error(request.refusal.reason);
    const audio = request.value.inputs.find(({ name }) => name === 'AUDIO');
    const bytes = new Uint8Array(audio?.bytes ?? []);
    const traceparent = incoming.headers.traceparent?.toString();
    double.seen.push({ samples: new Float32Array(bytes.buffer), parameters: request.value.parameters, traceparent });
    const number = double.seen.length - 1;
    const text = double.say(number);
    await double.gate;
    await double.hold(number);
    const failure = double.failures.shift();
    if (failure !== undefined) {
      response.writeHead(failure, { 'content-type': 'application/json' }).end('{"error":"double"}');
      return;
    }
    const { logProbs, frames } = spell(text);
    const body = encodeInferResponse(
      {
        model: 'test-en',
        version: '1',
        outputs: [
          fp32Tensor('LOG_PROBS', logProbs, [1, frames, tokens.length]),
          int32Tensor('FRAMES', Int32Array.of(frames), [1, 1]),
        ],
      },
      () => true,
    );
    if (!body.ok) throw new Error(body.refusal.reason);
    response.writeHead(200, { ...body.value.headers }).end(joinChunks(body.value));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(double, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}
