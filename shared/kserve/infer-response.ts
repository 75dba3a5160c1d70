import { z } from 'zod';
import { ok } from '../result.ts';
import { type Body, makeBody, splitBody, Tail } from './body.ts';
import { fault, type Read } from './fault.ts';
import { describe } from './infer-request.ts';
import { type Parameters, parameters } from './parameters.ts';
import type { Tensor } from './tensor.ts';
import { readTensor, tensorJson, tensorMessage } from './tensor-message.ts';

export interface InferResponse {
  readonly id?: string;
  readonly model: string;
  readonly version: string;
  readonly parameters?: Parameters;
  readonly outputs: readonly Tensor[];
}

export const inferResponseMessage = z.object({
  id: z.string().optional(),
  model_name: z.string(),
  model_version: z.string().optional(),
  parameters: parameters.optional(),
  outputs: z.array(tensorMessage),
});

/** Client side. Tensor bytes are windows into `body`. */
export function decodeInferResponse(body: Uint8Array, headerLength?: string | null): Read<InferResponse> {
  const split = splitBody(body, headerLength);
  if (!split.ok) return split;
  const parsed = inferResponseMessage.safeParse(split.value.json);
  if (!parsed.success) return fault(`invalid inference response: ${describe(parsed.error)}`);
  const tail = new Tail(split.value.tail);
  const outputs: Tensor[] = [];
  for (const output of parsed.data.outputs) {
    const tensor = readTensor(output, tail);
    if (!tensor.ok) return tensor;
    outputs.push(tensor.value);
  }
  if (tail.left > 0) return fault(`${tail.left} bytes follow the last binary tensor`);
  const { id, model_name: model, model_version: version = '', parameters: given } = parsed.data;
  return ok({ ...(id !== undefined && { id }), model, version, ...(given && { parameters: given }), outputs });
}

/** Server side: `isBinary` says for each output in which form the client asked for it. */
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
