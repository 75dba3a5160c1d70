import { z } from 'zod';
import { ok } from '../result.ts';
import { type Body, makeBody, splitBody, Tail } from './body.ts';
import { fault, type Read } from './fault.ts';
import { describe } from './infer-request.ts';
import { type Parameters, parameters } from './parameters.ts';
import type { Tensor } from './tensor.ts';
import { readTensor, tensorJson, tensorMessage } from './tensor-message.ts';

/** No head of binary tensors is longer than this; one with numbers in it need not be kept. */
const KNOWN_BYTES = 4_096;

export interface InferResponse {
  readonly id?: string;
  readonly model: string;
  readonly version: string;
  readonly parameters?: Parameters;
  readonly outputs: readonly Tensor[];
}

const inferResponseMessage = z.object({
  id: z.string().optional(),
  model_name: z.string(),
  model_version: z.string().optional(),
  parameters: parameters.optional(),
  outputs: z.array(tensorMessage),
});

type Message = z.infer<typeof inferResponseMessage>;

function readTensors({ id, model_name: model, model_version: version = '', ...message }: Message, bytes: Uint8Array) {
  const tail = new Tail(bytes);
  const outputs: Tensor[] = [];
  for (const output of message.outputs) {
    const tensor = readTensor(output, tail);
    if (!tensor.ok) return tensor;
    outputs.push(tensor.value);
  }
  if (tail.left > 0) return fault(`${tail.left} bytes follow the last binary tensor`);
  const given = message.parameters;
  return ok({ ...(id !== undefined && { id }), model, version, ...(given && { parameters: given }), outputs });
}

function readMessage(body: Uint8Array, headerLength: string | null | undefined) {
  const split = splitBody(body, headerLength);
  if (!split.ok) return split;
  const parsed = inferResponseMessage.safeParse(split.value.json);
  if (!parsed.success) return fault(`invalid inference response: ${describe(parsed.error)}`);
  return ok({ message: parsed.data, tail: split.value.tail });
}

/** Client side. Tensor bytes are windows into `body`. */
export function decodeInferResponse(body: Uint8Array, headerLength?: string | null): Read<InferResponse> {
  const read = readMessage(body, headerLength);
  return read.ok ? readTensors(read.value.message, read.value.tail) : read;
}

/**
 * The same for many answers of one model: all that is in front of the tensors is mostly what it was the last time, and
 * is then not parsed again.
 */
export function createInferResponseReader(): typeof decodeInferResponse {
  let known: { readonly head: Uint8Array; readonly message: Message } | undefined;
  return (body, headerLength) => {
    if (known && headerLength === String(known.head.length) && startsWith(body, known.head)) {
      return readTensors(known.message, body.subarray(known.head.length));
    }
    const read = readMessage(body, headerLength);
    if (!read.ok) return read;
    const { message, tail } = read.value;
    // Not `slice`: that of a Buffer is a window and not a copy.
    const head = new Uint8Array(body.subarray(0, body.length - tail.length));
    known = head.length <= KNOWN_BYTES ? { head, message } : undefined;
    return readTensors(message, tail);
  };
}

function startsWith(body: Uint8Array, head: Uint8Array): boolean {
  if (body.length < head.length) return false;
  for (let at = 0; at < head.length; at++) if (body[at] !== head[at]) return false;
  return true;
}

/** Server side: `isBinary` says for each output in which form the client requests it. */
export function encodeInferResponse(response: InferResponse, isBinary: (output: string) => boolean): Read<Body> {
  const outputs: string[] = [];
  const binary: Uint8Array[] = [];
  for (const tensor of response.outputs) {
    const asBinary = isBinary(tensor.name);
    const json = tensorJson(tensor, asBinary);
    if (!json.ok) return json;
    outputs.push(json.value);
    if (asBinary) binary.push(tensor.bytes);
  }
  const head = JSON.stringify({
    ...(response.id !== undefined && { id: response.id }),
    model_name: response.model,
    model_version: response.version,
    ...(response.parameters && { parameters: response.parameters }),
  });
  return ok(makeBody(`${head.slice(0, -1)},"outputs":[${outputs.join(',')}]}`, binary));
}
