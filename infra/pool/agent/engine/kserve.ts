import { headerLengthField } from '../../../../shared/kserve/body.ts';
import { encodeInferRequest } from '../../../../shared/kserve/infer-request.ts';
import { createInferResponseReader } from '../../../../shared/kserve/infer-response.ts';
import { modelMetadata } from '../../../../shared/kserve/metadata.ts';
import { statisticsMessage } from '../../../../shared/kserve/statistics.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok } from '../../../../shared/result.ts';
import type { Engine, Inference, InferOutcome } from './engine.ts';
import { createEngineClient, type EngineResponse } from './http.ts';
import { readQueues } from './queues.ts';
import { createRepositoryCalls } from './repository.ts';

/** Statuses of an engine that is restarting, full or gone: it has not understood the request. */
const RETRYABLE = new Set([408, 429, 500, 502, 503, 504]);

const modelPath = (model: string) => `/v2/models/${encodeURIComponent(model)}`;
const failed = (detail: string) => no(refuse('engine_failed', undefined, detail));

/** Calls of one engine. No method but `getJson` rejects. */
function createCalls({ request }: Pick<ReturnType<typeof createEngineClient>, 'request'>) {
  const readResponse = createInferResponseReader();

  function readOutcome({ status, headers, body }: EngineResponse): InferOutcome {
    // The engine's own sentence may quote what it was sent, so only the status goes on.
    if (status !== 200)
      return { ok: false, retryable: RETRYABLE.has(status), detail: `engine status ${status}`, status };
    const read = readResponse(body, headers[headerLengthField]?.toString());
    if (!read.ok) return { ok: false, retryable: false, detail: `engine answer: ${read.refusal.reason}` };
    return { ok: true, value: new Map(read.value.outputs.map((tensor) => [tensor.name, tensor])) };
  }

  return {
    async isOk(path: string, signal: AbortSignal, onFailure?: (reason: string) => void): Promise<boolean> {
      try {
        const { status } = await request({ method: 'GET', path, signal });
        if (status !== 200) onFailure?.(`http_${status}`);
        return status === 200;
      } catch (error) {
        const { code, name } = error as NodeJS.ErrnoException;
        onFailure?.(signal.aborted ? 'timeout' : (code ?? name));
        return false;
      }
    },
    async getJson(path: string, signal: AbortSignal): Promise<unknown> {
      const { status, body } = await request({ method: 'GET', path, signal });
      if (status !== 200) throw new Error(`status ${status}`);
      return JSON.parse(new TextDecoder().decode(body));
    },
    async infer(inference: Inference): Promise<InferOutcome> {
      const { model, inputs, outputs, priority, timeoutMicros, signal, sequence, traceparent } = inference;
      const body = encodeInferRequest({
        inputs,
        outputs,
        // A request of a sequence that timed out in the engine's queue would leave a hole in its state.
        parameters: sequence
          ? { sequence_id: sequence.id, sequence_start: sequence.start, sequence_end: sequence.end }
          : { ...(priority > 0 && { priority }), timeout: Math.round(timeoutMicros) },
      });
      if (!body.ok) return { ok: false, retryable: false, detail: `engine request: ${body.refusal.reason}` };
      try {
        const path = `${modelPath(model)}/infer`;
        const headers = traceparent === undefined ? {} : { traceparent };
        return readOutcome(await request({ method: 'POST', path, headers, body: body.value, signal }));
      } catch (error) {
        const code = (error as NodeJS.ErrnoException).code ?? 'no answer';
        return { ok: false, retryable: !signal.aborted, detail: `engine ${code}` };
      }
    },
  };
}

/**
 * Creates an engine that speaks KServe v2 over HTTP with binary tensors: the embedded one or Triton. An abort closes the
 * connection. The embedded engine then drops an inference that waits and finishes one that runs. Triton does not see
 * it over HTTP and finishes both; what waits there ends by the timeout that it was sent with, if its model has one.
 * `health`: an engine whose models are loaded one by one is not `ready` during each load, and serves all the same.
 */
export function createKserveEngine(url: string, connections: number, health: 'ready' | 'live' = 'ready'): Engine {
  const client = createEngineClient(url, connections);
  const { isOk, getJson, infer } = createCalls(client);
  return {
    ready: (signal, onFailure) => isOk(`/v2/health/${health}`, signal, onFailure),
    modelReady: (model, signal) => isOk(`${modelPath(model)}/ready`, signal),
    async metadata(model, signal) {
      try {
        const { inputs, outputs } = modelMetadata.parse(await getJson(modelPath(model), signal));
        return ok({ inputs, outputs });
      } catch {
        return failed('engine metadata');
      }
    },
    async queues(model, signal) {
      try {
        return ok(await readQueues(model, (name) => getJson(`${modelPath(name)}/config`, signal)));
      } catch {
        return failed('engine configuration');
      }
    },
    infer,
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
    ...createRepositoryCalls({ request: client.request, getJson }),
    close: client.close,
  };
}
