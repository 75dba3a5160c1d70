import { Agent, type IncomingMessage, request } from 'node:http';
import { refuse } from '../../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../../shared/result.ts';
import type { Span } from '../../../../../shared/trace/span.ts';
import { ENGINE_ANSWER_BYTES } from '../limits.ts';

/** A message to the engine. */
export interface EngineCall {
  readonly method: 'GET' | 'POST';
  /** Below `/v2/models/`: the name of the model is the caller's to encode. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly chunks?: readonly Uint8Array[];
  readonly signal: AbortSignal;
}

export interface EngineAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** The caller reads or cancels it. Errors when the connection breaks. */
  readonly body: AsyncIterable<Uint8Array>;
}

/** The way of callers' own messages to an engine that speaks KServe v2 over HTTP. */
export interface EngineClient {
  /** Refuses with `engine_failed` when there is no answer. */
  call(call: EngineCall): Promise<Result<EngineAnswer>>;
  close(): void;
}

export const modelPath = (model: string, version: string | undefined): string =>
  `${encodeURIComponent(model)}${version === undefined ? '' : `/versions/${version}`}`;

/** Returns the header that makes the engine's own spans children of `span`. */
export const traceHeader = (span: Span | undefined): Record<string, string> =>
  span ? { traceparent: span.traceparent } : {};

/** Connections of its own: a caller's long generation must not keep an utterance waiting for one. */
export function openClient(url: string): EngineClient {
  const base = new URL(url);
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 8 });
  return {
    call({ method, path, headers = {}, chunks = [], signal }) {
      return new Promise((resolve) => {
        const length = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
        const outgoing = request(
          {
            host: base.hostname,
            port: base.port || 80,
            path: `${base.pathname.replace(/\/$/, '')}/v2/models/${path}`,
            method,
            agent,
            signal,
            headers: { ...headers, ...(method === 'POST' && { 'content-length': String(length) }) },
          },
          (incoming) => {
            const { statusCode: status = 0 } = incoming;
            resolve(ok({ status, headers: incoming.headers, body: incoming as AsyncIterable<Uint8Array> }));
          },
        );
        outgoing.on('error', (error: NodeJS.ErrnoException) =>
          resolve(no(refuse('engine_failed', undefined, `engine ${error.code ?? 'no answer'}`))),
        );
        for (const chunk of chunks) outgoing.write(chunk);
        outgoing.end();
      });
    },
    close: () => agent.destroy(),
  };
}

/** Stands for the client where the engine serves no tensors. */
export const noTensors: EngineClient = {
  call: async () => no(refuse('tensors_unsupported', { rule: 'The model takes recordings and live streams only.' })),
  close() {},
};

/** The whole body of an answer. Refuses with `engine_failed` when it is cut off or over `ENGINE_ANSWER_BYTES`. */
export async function readWhole({ body }: EngineAnswer): Promise<Result<Uint8Array>> {
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const part of body) {
      length += part.length;
      if (length > ENGINE_ANSWER_BYTES) return no(refuse('engine_failed', undefined, 'answer too long'));
      parts.push(part);
    }
  } catch {
    return no(refuse('engine_failed', undefined, 'answer cut off'));
  }
  return ok(new Uint8Array(Buffer.concat(parts, length)));
}
