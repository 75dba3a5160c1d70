// The agent double's side of a KServe request: what an agent would answer, as the events of its records.
import type { CallEvent } from '../../shared/kserve/call.ts';
import { encodeInferRequest } from '../../shared/kserve/infer-request.ts';
import { encodeInferResponse } from '../../shared/kserve/infer-response.ts';
import { fp32Tensor, type Tensor } from '../../shared/kserve/tensor.ts';
import { makeToken } from '../edge/authority.ts';
import { REVISION, type Received, type Script } from './agent.ts';
import { ask } from './network.ts';

/** Chunks as one piece of memory. */
export const join = (chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.concat(chunks));

export const finalOf = (model: string, durationSeconds = 0): CallEvent => ({
  type: 'final',
  model,
  revision: REVISION,
  durationSeconds,
});

/** An answer with this body, in pieces of `size` bytes. */
export async function* answering(
  model: string,
  body: Uint8Array,
  headers: Record<string, string> = { 'content-type': 'application/json' },
  size = 50_000,
): ReturnType<Script> {
  yield { type: 'answer', headers, bytes: body.byteLength };
  for (let at = 0; at < body.byteLength; at += size) yield { type: 'body', bytes: body.subarray(at, at + size) };
  yield finalOf(model);
}

export const row = (name: string, ...values: number[]): Tensor =>
  fp32Tensor(name, Float32Array.from(values), [1, values.length]);

/** Says the numbers it was sent, doubled. */
export const doubling = (model: string): Script =>
  async function* (received: Received) {
    await received.all();
    const made = encodeInferResponse({ model, version: '1', outputs: [row('Y', 2, 4)] }, () => true);
    if (!made.ok) throw new Error(made.refusal.reason);
    yield* answering(model, join(made.value.chunks), { ...made.value.headers });
  };

export const bearer = async (claims: Record<string, unknown> = {}) => ({
  authorization: `Bearer ${await makeToken(claims)}`,
});

export interface InferCall {
  readonly claims?: Record<string, unknown>;
  readonly headers?: Record<string, string>;
  readonly body?: Uint8Array<ArrayBuffer> | string;
  readonly parameters?: Record<string, string | number | boolean>;
  readonly form?: 'binary' | 'json';
}

/** An inference as `tritonclient` sends it. */
export async function infer(model: string, call: InferCall = {}): Promise<Response> {
  const { claims, headers = {}, parameters, form = 'binary' } = call;
  const made = encodeInferRequest({ inputs: [row('X', 1, 2)], ...(parameters && { parameters }) }, form);
  if (!made.ok) throw new Error(made.refusal.reason);
  return ask(`/v2/models/${model}/infer`, {
    method: 'POST',
    headers: { ...(await bearer(claims)), ...(call.body === undefined && made.value.headers), ...headers },
    body: call.body ?? join(made.value.chunks),
  });
}

/** Status and text of a refusal, after a look at its shape: `error` is a string, as Triton's clients need it. */
export async function readError(answer: Response): Promise<{ status: number; error: string }> {
  const body = (await answer.json()) as { error: string };
  if (typeof body.error !== 'string' || Object.keys(body).length !== 1) throw new Error(JSON.stringify(body));
  // Triton's clients unpack no refusal.
  if (answer.headers.get('content-encoding') !== 'identity') throw new Error('may be packed on the way');
  if (!/^[\w-]{16,}$/.test(answer.headers.get('x-request-id') ?? '')) throw new Error('no request id');
  return { status: answer.status, error: body.error };
}
