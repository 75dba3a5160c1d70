import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { z } from 'zod';
import { headerLengthField } from '../../../shared/kserve/body.ts';
import { encodeInferRequest, type InferRequest } from '../../../shared/kserve/infer-request.ts';
import { decodeInferResponse, type InferResponse } from '../../../shared/kserve/infer-response.ts';
import { indexEntry } from '../../../shared/kserve/repository.ts';
import { type ModelStatistics, statisticsMessage } from '../../../shared/kserve/statistics.ts';
import { fp32Tensor, readFp32, type Tensor } from '../../../shared/kserve/tensor.ts';
import { joinChunks } from '../../shared/kserve/made.ts';
import type { Started } from './implementation.ts';

/** Longest wait for an expected event, ms; polled, never slept through. */
const PATIENCE_MS = 5_000;

export async function eventually<T>(look: () => Promise<T>, good: (seen: T) => boolean): Promise<T> {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const seen = await look();
    if (good(seen)) return seen;
    if (performance.now() > until)
      throw new Error(`did not happen within ${PATIENCE_MS} ms; last seen: ${JSON.stringify(seen)}`);
    await sleep(5);
  }
}

/** Polls until a value stays the same: an engine may count a request just after its answer. */
export async function settled<T>(look: () => Promise<T>): Promise<T> {
  let seen = await look();
  for (let same = 0; same < 3; same++) {
    await sleep(10);
    const next = await look();
    if (JSON.stringify(next) !== JSON.stringify(seen)) same = -1;
    seen = next;
  }
  return seen;
}

/** Addresses of an engine. */
type Addresses = Pick<Started, 'url' | 'metricsUrl'>;

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

export async function send(
  { url }: Addresses,
  method: string,
  path: string,
  body?: BodyInit,
  headers?: Record<string, string>,
  signal?: AbortSignal,
): Promise<Reply> {
  const response = await fetch(`${url}${path}`, {
    method,
    ...(body !== undefined && { body }),
    ...(headers && { headers }),
    ...(signal && { signal }),
  });
  return { status: response.status, headers: response.headers, body: new Uint8Array(await response.arrayBuffer()) };
}

export const textOf = ({ body }: Reply): string => new TextDecoder().decode(body);
export const jsonOf = (reply: Reply): unknown => JSON.parse(textOf(reply));
/** Body of every error answer. */
const errorMessage = z.object({ error: z.string() });
/** The text of an error answer; the shape of the answer is part of the contract. */
export const errorOf = (reply: Reply): string => errorMessage.parse(jsonOf(reply)).error;

export const get = (engine: Addresses, path: string): Promise<Reply> => send(engine, 'GET', path);
export const post = (engine: Addresses, path: string, value: unknown = {}): Promise<Reply> =>
  send(engine, 'POST', path, JSON.stringify(value), { 'content-type': 'application/json' });

type Given = Partial<Omit<InferRequest, 'inputs' | 'outputs'>> & { outputs?: readonly string[]; signal?: AbortSignal };

/** Sends a binary inference request and returns the raw answer. */
export function askInfer(
  engine: Addresses,
  model: string,
  inputs: readonly Tensor[],
  given: Given = {},
  form: 'binary' | 'json' = 'binary',
): Promise<Reply> {
  const { signal, ...request } = given;
  const body = encodeInferRequest({ ...request, inputs }, form);
  if (!body.ok) throw new Error(body.refusal.reason);
  return send(engine, 'POST', `/v2/models/${model}/infer`, joinChunks(body.value), { ...body.value.headers }, signal);
}

export function readReply(reply: Reply): InferResponse {
  expect(reply.status, textOf(reply)).toBe(200);
  const response = decodeInferResponse(reply.body, reply.headers.get(headerLengthField));
  if (!response.ok) throw new Error(response.refusal.reason);
  return response.value;
}

export async function infer(
  engine: Addresses,
  model: string,
  inputs: readonly Tensor[],
  given: Given = {},
): Promise<InferResponse> {
  return readReply(await askInfer(engine, model, inputs, given));
}

/** One item of a batch of FP32 values. */
export const row = (name: string, ...values: number[]): Tensor =>
  fp32Tensor(name, Float32Array.from(values), [1, values.length]);

export function floats({ outputs }: InferResponse, name: string): number[] {
  const tensor = outputs.find((output) => output.name === name);
  if (!tensor) throw new Error(`no output '${name}' among ${outputs.map((output) => output.name)}`);
  const values = readFp32(tensor);
  if (!values.ok) throw new Error(values.refusal.reason);
  return [...values.value];
}

async function statisticsNow(engine: Addresses, model: string): Promise<ModelStatistics> {
  const reply = await get(engine, `/v2/models/${model}/stats`);
  return statisticsMessage.parse(jsonOf(reply)).model_stats[0]!;
}

export const statistics = (engine: Addresses, model: string): Promise<ModelStatistics> =>
  settled(() => statisticsNow(engine, model));

/** Returns the executions of batches by size. */
export async function batchCounts(engine: Addresses, model: string): Promise<Record<number, number>> {
  const { batch_stats } = await statistics(engine, model);
  return Object.fromEntries(batch_stats.map(({ batch_size, compute_infer }) => [batch_size, compute_infer.count]));
}

/** Returns one sample of the metrics page by its labels; 0 when the series does not exist yet. */
export async function metric({ metricsUrl }: Addresses, name: string, labels: Record<string, string>): Promise<number> {
  const page = await (await fetch(metricsUrl)).text();
  for (const line of page.split('\n')) {
    const [, found, inside = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (found !== name) continue;
    const pairs = Object.fromEntries([...inside.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, text]) => [key, text]));
    if (Object.entries(labels).every(([key, text]) => pairs[key] === text)) return Number(value);
  }
  return 0;
}

/** Returns a counter of the metrics page once it is stable. */
export const counter = (engine: Addresses, name: string, labels: Record<string, string>): Promise<number> =>
  settled(() => metric(engine, name, labels));

export const pending = (engine: Addresses, model: string): Promise<number> =>
  metric(engine, 'nv_inference_pending_request_count', { model });

export const untilPending = (engine: Addresses, model: string, count: number): Promise<number> =>
  eventually(
    () => pending(engine, model),
    (seen) => seen === count,
  );

/**
 * Keeps the one instance of a slow model busy while `arrange` fills its queue. Nothing may depend on timing:
 * when a request ran before the queue was full (the task was too short for this machine, or was overtaken),
 * all is repeated with a longer task.
 */
export async function whileBusy<T>(engine: Addresses, model: string, arrange: () => Promise<T>): Promise<T> {
  for (let turns = 50_000; turns <= 3_200_000; turns *= 4) {
    const executed = (await statisticsNow(engine, model)).execution_count;
    const blocker = askInfer(engine, model, [row('X', turns)], { parameters: { priority: 1 } });
    await untilPending(engine, model, 0);
    const result = await arrange().then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    const inTime = (await statisticsNow(engine, model)).execution_count === executed;
    expect((await blocker).status).toBe(200);
    if (inTime && 'error' in result) throw result.error;
    if (inTime && 'value' in result) return result.value;
    await untilPending(engine, model, 0);
  }
  throw new Error('the instance never stayed busy for long enough');
}

export const repositoryIndex = z.array(indexEntry);

export async function stateOf(engine: Addresses, model: string) {
  const index = repositoryIndex.parse(jsonOf(await post(engine, '/v2/repository/index')));
  return index.find(({ name }) => name === model);
}
export const untilState = (engine: Addresses, model: string, state: string) =>
  eventually(
    () => stateOf(engine, model),
    (seen) => seen?.state === state,
  );
export const load = (engine: Addresses, model: string, parameters?: object) =>
  post(engine, `/v2/repository/models/${model}/load`, parameters ? { parameters } : {});
export const unload = (engine: Addresses, model: string, parameters?: object) =>
  post(engine, `/v2/repository/models/${model}/unload`, parameters ? { parameters } : {});
