import { Agent, type IncomingMessage, request } from 'node:http';
import { encodeInferRequest } from '../../../shared/kserve/infer-request.ts';
import { decodeInferResponse } from '../../../shared/kserve/infer-response.ts';
import { modelMetadata } from '../../../shared/kserve/metadata.ts';
import { statisticsMessage } from '../../../shared/kserve/statistics.ts';
import { limits } from '../../../shared/limits.ts';
import { refuse } from '../../../shared/refusal.ts';
import { no, ok } from '../../../shared/result.ts';
import type { Engine, InferOutcome } from './engine.ts';

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Uint8Array;
}

interface Call {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly chunks?: readonly Uint8Array[];
  readonly signal: AbortSignal;
}

/** Requests that failed without having been understood: the engine is restarting, full or gone. */
const RETRYABLE = new Set([408, 429, 500, 502, 503, 504]);

const modelPath = (model: string) => `/v2/models/${encodeURIComponent(model)}`;
const failed = (detail: string) => no(refuse('engine_failed', undefined, detail));

/**
 * An engine that speaks KServe v2 over HTTP with binary tensors: the embedded one and Triton. Aborting a call drops its
 * connection, which cancels the inference on the embedded engine. Triton does not see that over HTTP and finishes the
 * inference; what still waits there ends by the timeout it was sent with.
 */
export function createKserveEngine(url: string, connections: number): Engine {
  const base = new URL(url);
  const agent = new Agent({ keepAlive: true, maxSockets: connections + 4, maxFreeSockets: connections });

  /** Rejects only when there is no answer. */
  function call({ method, path, headers = {}, chunks = [], signal }: Call): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const length = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
      const outgoing = request(
        {
          host: base.hostname,
          port: base.port || 80,
          path: base.pathname.replace(/\/$/, '') + path,
          method,
          agent,
          signal,
          headers: { ...headers, ...(method === 'POST' && { 'content-length': String(length) }) },
        },
        (incoming) => {
          const parts: Buffer[] = [];
          let received = 0;
          incoming.on('data', (part: Buffer) => {
            received += part.length;
            if (received > limits.engineAnswerBytes.value) incoming.destroy(new Error('answer too long'));
            else parts.push(part);
          });
          incoming.on('error', reject);
          incoming.on('end', () => {
            if (!incoming.complete) reject(new Error('answer cut off'));
            resolve({
              status: incoming.statusCode ?? 0,
              headers: incoming.headers,
              body: new Uint8Array(Buffer.concat(parts)),
            });
          });
        },
      );
      outgoing.on('error', reject);
      for (const chunk of chunks) outgoing.write(chunk);
      outgoing.end();
    });
  }

  async function isOk(path: string, signal: AbortSignal): Promise<boolean> {
    try {
      return (await call({ method: 'GET', path, signal })).status === 200;
    } catch {
      return false;
    }
  }

  async function getJson(path: string, signal: AbortSignal): Promise<unknown> {
    const { status, body } = await call({ method: 'GET', path, signal });
    if (status !== 200) throw new Error(`status ${status}`);
    return JSON.parse(new TextDecoder().decode(body));
  }

  function readOutcome({ status, headers, body }: Answer): InferOutcome {
    // The engine's own sentence may quote what it was sent, so only the status goes on.
    if (status !== 200)
      return { ok: false, retryable: RETRYABLE.has(status), detail: `engine status ${status}`, status };
    const read = decodeInferResponse(body, headers['inference-header-content-length'] as string | undefined);
    if (!read.ok) return { ok: false, retryable: false, detail: `engine answer: ${read.refusal.reason}` };
    return { ok: true, value: new Map(read.value.outputs.map((tensor) => [tensor.name, tensor])) };
  }

  return {
    ready: (signal) => isOk('/v2/health/ready', signal),
    modelReady: (model, signal) => isOk(`${modelPath(model)}/ready`, signal),
    async metadata(model, signal) {
      try {
        const { inputs, outputs } = modelMetadata.parse(await getJson(modelPath(model), signal));
        return ok({ inputs, outputs });
      } catch {
        return failed('engine metadata');
      }
    },
    async infer({ model, inputs, outputs, priority, timeoutMicros, signal, sequence }) {
      const body = encodeInferRequest({
        inputs,
        outputs,
        // A request of a sequence that timed out in the engine's queue would leave a hole in its state.
        parameters: sequence
          ? { sequence_id: sequence.id, sequence_start: sequence.start, sequence_end: sequence.end }
          : { priority, timeout: Math.round(timeoutMicros) },
      });
      if (!body.ok) return { ok: false, retryable: false, detail: `engine request: ${body.refusal.reason}` };
      try {
        const { headers, chunks } = body.value;
        return readOutcome(await call({ method: 'POST', path: `${modelPath(model)}/infer`, headers, chunks, signal }));
      } catch (error) {
        const code = (error as NodeJS.ErrnoException).code ?? 'no answer';
        return { ok: false, retryable: !signal.aborted, detail: `engine ${code}` };
      }
    },
    async statistics(model, signal) {
      try {
        const { model_stats: models } = statisticsMessage.parse(await getJson(`${modelPath(model)}/stats`, signal));
        const sum = (pick: (stats: (typeof models)[number]['inference_stats']) => number) =>
          models.reduce((total, { inference_stats: stats }) => total + pick(stats), 0);
        return ok({
          requests: sum((stats) => stats.success.count),
          computeNs: sum((stats) => stats.compute_infer.ns),
          queueNs: sum((stats) => stats.queue.ns),
        });
      } catch {
        return failed('engine statistics');
      }
    },
    close: () => agent.destroy(),
  };
}
