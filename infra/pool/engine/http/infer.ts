import { headerLengthField } from '../../../../shared/kserve/body.ts';
import { fromConfigName } from '../../../../shared/kserve/datatype.ts';
import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import { decodeInferRequest, decodeRawRequest, type InferRequest } from '../../../../shared/kserve/infer-request.ts';
import { encodeInferResponse } from '../../../../shared/kserve/infer-response.ts';
import { toCall } from '../model/check-request.ts';
import type { Served } from '../model/served.ts';
import { refuse } from '../refuse.ts';
import type { Repository } from '../repository/repository.ts';
import { type Answer, message, refused } from './answer.ts';
import type { EngineRequest } from './engine-request.ts';

/** Decodes a request. With a header length of 0 the body is the bare tensor of the model's only input. */
function decode(served: Served, body: Uint8Array, headerLength: string | undefined): Read<InferRequest> {
  if (headerLength !== '0') return decodeInferRequest(body, headerLength);
  const [input, second] = served.config.input;
  if (!input || second) return fault(`raw requests need a model with one input, '${served.name}' has several`);
  const shape = served.config.max_batch_size > 0 ? [1, ...input.dims] : input.dims;
  return decodeRawRequest(body, { name: input.name, datatype: fromConfigName(input.data_type) ?? 'BYTES', shape });
}

export async function infer(
  repository: Repository,
  { model, version, headers, body, signal }: EngineRequest,
): Promise<Answer> {
  const served = repository.find(model, version);
  if (!served.ok) return refused(served.refusal);
  const length = headers[headerLengthField];
  const request = decode(served.value, body, Array.isArray(length) ? length[0] : length);
  if (!request.ok) {
    served.value.statistics.failed('OTHER', 0);
    return refused(refuse('INVALID_ARG', request.refusal.reason).refusal);
  }
  const { id, outputs, binaryOutput } = request.value;
  const call = toCall(request.value, signal);
  if (call.mark && !served.value.takesSequences)
    return refused(refuse('UNSUPPORTED', `model '${served.value.name}' does not keep sequences`).refusal);
  const answer = await served.value.infer(call);
  if (!answer.ok) return refused(answer.refusal);
  const isBinary = (name: string) => outputs.find((output) => output.name === name)?.binary ?? binaryOutput;
  const response = encodeInferResponse(
    {
      ...(id !== undefined && { id }),
      model: served.value.name,
      version: String(served.value.version),
      outputs: answer.value.outputs,
    },
    isBinary,
  );
  return response.ok ? message(response.value) : refused(refuse('INVALID_ARG', response.refusal.reason).refusal);
}
