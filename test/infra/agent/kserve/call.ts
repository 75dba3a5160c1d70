// Requests for tensors as the edge passes them on, and their answers put together.
import type { Agent } from '../../../../infra/pool/agent/agent.ts';
import { type BodyPiece, type CallEvent, type CallHead, readCallRecord } from '../../../../shared/kserve/call.ts';
import { encodeInferRequest, type InferRequest } from '../../../../shared/kserve/infer-request.ts';
import { decodeInferResponse } from '../../../../shared/kserve/infer-response.ts';
import { fp32Tensor, type Tensor } from '../../../../shared/kserve/tensor.ts';
import { askShort, type FakeEdge } from '../../../fake/edge.ts';

export interface Call {
  readonly head?: Partial<CallHead>;
  readonly body?: Uint8Array;
  readonly claims?: Record<string, unknown>;
  readonly signal?: AbortSignal;
}

export type Request = Partial<Omit<InferRequest, 'outputs'>> & { outputs?: string[] };

export const row = (name: string, ...values: number[]): Tensor =>
  fp32Tensor(name, Float32Array.from(values), [1, values.length]);

/** The bytes of a tensor, whatever holds them. */
export const plain = (tensor: Tensor | undefined): string => Buffer.from(tensor?.bytes ?? []).toString('hex');

/** Asks an agent about `model`; events come without keepalives, and the body put together. */
export function callerOf(place: () => { agent: Agent; edge: FakeEdge }, model: string) {
  async function ask({ head = {}, body = new Uint8Array(), claims = {}, signal }: Call) {
    const { agent, edge } = place();
    const { status, reason, events, whole } = await askShort({
      url: agent.url,
      agent: 'agent-1',
      attestation: agent.keys.current().token,
      edge,
      body,
      contentType: '',
      head: { v: 1, task: 'infer', model, dialect: undefined, contentType: undefined, ...head },
      claims,
      read: readCallRecord,
      ...(signal && { signal }),
    });
    const told = (events as unknown as (CallEvent | BodyPiece)[]).filter(({ type }) => type !== 'keepalive');
    const answer = told.find((event) => event.type === 'answer');
    const pieces = told.flatMap((event) => (event.type === 'body' ? [event.bytes] : []));
    const refusal = told.find((event) => event.type === 'refusal');
    const types = told.map(({ type }) => type);
    return { status, reason, whole, types, answer, body: Buffer.concat(pieces), refusal, last: told.at(-1) };
  }

  async function infer(request: Request = {}, call: Call & { form?: 'json' } = {}) {
    const made = encodeInferRequest({ inputs: [row('X', 1, 2)], ...request }, call.form ?? 'binary');
    if (!made.ok) throw new Error(made.refusal.reason);
    const headerLength = made.value.headers['inference-header-content-length'];
    const id = request.parameters?.sequence_id;
    const head = {
      ...(headerLength !== undefined && { headerLength }),
      ...(id !== undefined && { sequence: String(id) }),
      ...call.head,
    };
    return ask({ ...call, head, body: Buffer.concat(made.value.chunks) });
  }

  return { ask, infer };
}

export type Got = Awaited<ReturnType<ReturnType<typeof callerOf>['ask']>>;

/** The inference in an answer; throws when there is none. */
export function valuesOf({ answer, body, refusal }: Pick<Got, 'answer' | 'body' | 'refusal'>) {
  if (refusal) throw new Error(JSON.stringify(refusal));
  const read = decodeInferResponse(body, answer?.headers['inference-header-content-length']);
  if (!read.ok) throw new Error(read.refusal.reason);
  return read.value;
}
