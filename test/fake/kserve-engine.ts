// An engine that speaks KServe v2 and does what a test says.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeInferRequest, type InferRequest } from '../../shared/kserve/infer-request.ts';
import { encodeInferResponse } from '../../shared/kserve/infer-response.ts';
import type { Tensor } from '../../shared/kserve/tensor.ts';

export interface SeenCall {
  readonly path: string;
  readonly request: InferRequest;
}

export interface KserveEngine {
  readonly url: string;
  readonly seen: SeenCall[];
  /** Idle time of sequences that the configuration names, microseconds. */
  idleMicros: number;
  /** Configurations by model; of others it says one level for each class. */
  readonly configs: Record<string, object>;
  /** The next answers, used up one by one: outputs, or a status with a text, or nothing at all. */
  next: (readonly Tensor[] | { status: number; error: string } | 'hang' | 'drop')[];
  /** Outputs of an answer when `next` is empty. */
  outputs: readonly Tensor[];
  /** Answers a generation. */
  generate: (body: string, response: ServerResponse) => void;
  stop(): Promise<void>;
}

async function bodyOf(incoming: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part);
  return Buffer.concat(parts);
}

const json = (response: ServerResponse, value: unknown, status = 200) =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));

export async function startKserveEngine(): Promise<KserveEngine> {
  const engine = {
    seen: [] as SeenCall[],
    idleMicros: 1_000_000,
    configs: {},
    next: [],
    outputs: [],
    generate: (_: string, response: ServerResponse) => json(response, { text_output: 'hi' }),
  } as unknown as KserveEngine & { url: string };
  const server = createServer(async (incoming, response) => {
    const path = (incoming.url ?? '').replace('/v2/models/', '');
    if (incoming.method === 'GET') return answerGet(engine, path, response);
    const body = await bodyOf(incoming).catch(() => undefined);
    if (!body) return;
    if (!path.endsWith('/infer')) return engine.generate(body.toString(), response);
    const length = incoming.headers['inference-header-content-length'] as string | undefined;
    const request = decodeInferRequest(body, length);
    if (!request.ok) return json(response, { error: request.refusal.reason }, 400);
    engine.seen.push({ path, request: request.value });
    const answer = engine.next.shift() ?? engine.outputs;
    if (answer === 'hang') return;
    if (answer === 'drop') return void response.destroy();
    if ('status' in answer) return json(response, { error: answer.error }, answer.status);
    const { sequence_id } = request.value.parameters;
    const made = encodeInferResponse(
      {
        model: 'adder',
        version: '1',
        ...(sequence_id !== undefined && { parameters: { sequence_id } }),
        outputs: answer,
      },
      () => true,
    );
    if (!made.ok) throw new Error(made.refusal.reason);
    response.writeHead(200, { ...made.value.headers }).end(Buffer.concat(made.value.chunks));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(engine, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}

function answerGet(engine: KserveEngine, path: string, response: ServerResponse): void {
  const tensor = (name: string) => ({ name, datatype: 'FP32', shape: [-1, 4] });
  if (path.endsWith('/config')) {
    const sequence_batching = { max_sequence_idle_microseconds: engine.idleMicros };
    const usual = { sequence_batching, dynamic_batching: { priority_levels: 4 } };
    json(response, engine.configs[path.replace('/config', '')] ?? usual);
  } else if (path.endsWith('/stats')) json(response, { model_stats: [] });
  else if (path === 'adder/versions/9')
    json(response, { error: "Request for unknown model: 'adder' version 9 is not found" }, 404);
  else json(response, { name: 'adder', platform: 'p', inputs: [tensor('X')], outputs: [tensor('Y')] });
}
