import { type CallHead, sequenceName } from '../../../../shared/kserve/call.ts';
import type { Datatype } from '../../../../shared/kserve/datatype.ts';
import { decodeInferRequest, decodeRawRequest, type InferRequest } from '../../../../shared/kserve/infer-request.ts';
import { INFER_JSON_BYTES, INFER_NAME_CHARACTERS } from '../../../../shared/kserve/limits.ts';
import type { ModelMetadata } from '../../../../shared/kserve/metadata.ts';
import type { RequestParameters } from '../../../../shared/kserve/parameters.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { BUFFERED_BODY_BYTES } from '../../../../shared/speech/limits.ts';

/** A caller's request that may be handed to an engine, once what is ours to say was put in. */
export interface Checked {
  readonly request: InferRequest;
  /** Absent when the request is no part of a sequence. */
  readonly sequence: { readonly id: string | number; readonly start: boolean; readonly end: boolean } | undefined;
  /** The caller's own wishes; 0 for none. */
  readonly priority: number;
  readonly timeoutMicros: number;
  /** Further parameters for the model. */
  readonly parameters: Readonly<Record<string, string | number | boolean>>;
}

const wrong = (rule: string) => no(refuse('tensors_invalid', { rule }));

/** Names that engines give a meaning of their own, or keep for themselves. */
const isReserved = (name: string): boolean => name.startsWith('triton_') || name === 'headers';

/** The request in a body. `describe` is asked only for the raw form, which does not name its input. */
export async function readRequest(
  body: Uint8Array,
  head: CallHead,
  describe: () => Promise<Result<ModelMetadata>>,
): Promise<Result<Checked>> {
  const { headerLength } = head;
  if (headerLength === '0') return readRaw(body, describe);
  const length = headerLength !== undefined && /^\d{1,15}$/.test(headerLength) ? Number(headerLength) : body.byteLength;
  if (length > INFER_JSON_BYTES) {
    return wrong(`the JSON part is over ${INFER_JSON_BYTES} bytes; send tensors as binary data`);
  }
  const decoded = decodeInferRequest(body, headerLength);
  return decoded.ok ? checkRequest(decoded.value, head) : wrong(decoded.refusal.reason);
}

async function readRaw(body: Uint8Array, describe: () => Promise<Result<ModelMetadata>>): Promise<Result<Checked>> {
  const metadata = await describe();
  if (!metadata.ok) return metadata;
  const [input, second] = metadata.value.inputs;
  if (!input || second) return wrong('raw requests need a model with one input');
  const { name, datatype, shape } = input;
  // A model that batches has the batch as its first dimension; a raw body is one of it.
  const one = shape.length > 1 && shape[0] === -1 ? [1, ...shape.slice(1)] : shape;
  const raw = decodeRawRequest(body, { name, datatype: datatype as Datatype, shape: one });
  if (!raw.ok) return wrong(raw.refusal.reason);
  return ok({ request: raw.value, sequence: undefined, priority: 0, timeoutMicros: 0, parameters: {} });
}

/**
 * Checks the bounds that the reader of a message does not, and what a caller may not say. Refuses with
 * `tensors_invalid` or `hints_conflict`.
 */
export function checkRequest(request: InferRequest, head: Pick<CallHead, 'sequence'>): Result<Checked> {
  const { id = '', parameters: given } = request;
  const longest = INFER_NAME_CHARACTERS;
  if (id.length > longest) return wrong(`the id has over ${longest} characters`);
  const { sequence_id, sequence_start, sequence_end, priority = 0, timeout = 0, binary_data_output, ...rest } = given;
  const reserved = Object.keys(rest).find(isReserved);
  if (reserved !== undefined) return wrong(`parameter '${reserved.slice(0, 80)}' is reserved`);
  const sequence = readSequence({ sequence_id, sequence_start, sequence_end }, head);
  if (!sequence.ok) return sequence;
  return ok({ request, sequence: sequence.value, priority, timeoutMicros: timeout, parameters: rest });
}

type Flags = Pick<RequestParameters, 'sequence_id' | 'sequence_start' | 'sequence_end'>;

/**
 * Reads the sequence. A request that was routed by another sequence, or by none, is refused: its state would
 * seem lost.
 */
function readSequence(
  { sequence_id: id, sequence_start: start = false, sequence_end: end = false }: Flags,
  { sequence: routed }: Pick<CallHead, 'sequence'>,
): Result<Checked['sequence']> {
  if (id === undefined || id === 0 || id === '') {
    return routed === undefined ? ok(undefined) : no(refuse('hints_conflict', { field: 'sequence_id' }));
  }
  const longest = INFER_NAME_CHARACTERS;
  if (typeof id === 'string' && id.length > longest) return wrong(`the sequence id has over ${longest} characters`);
  if (routed === undefined) {
    const bytes = BUFFERED_BODY_BYTES;
    return wrong(`sequence_id is not in the first ${bytes} bytes of the request: name it in x-auricle-sequence, too`);
  }
  if (sequenceName(id) !== routed) return no(refuse('hints_conflict', { field: 'sequence_id' }));
  return ok({ id, start, end });
}
