import type { CallHead } from '../../../../shared/kserve/call.ts';
import { encodeInferRequest } from '../../../../shared/kserve/infer-request.ts';
import {
  decodeInferResponse,
  encodeInferResponse,
  type InferResponse,
} from '../../../../shared/kserve/infer-response.ts';
import { INFER_JSON_BYTES } from '../../../../shared/kserve/limits.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { modelPath, readWhole, traceHeader } from '../engine/calls/client.ts';
import { engineRefusal } from '../engine/calls/engine-refusal.ts';
import type { EngineStep } from '../engine/calls/sequences.ts';
import { levelOf } from '../engine/level.ts';
import { engineModelOf } from '../models/served-model.ts';
import type { AgentRequest } from '../request/admitted-request.ts';
import { respond } from '../request/respond.ts';
import { type Checked, readRequest } from './check-request.ts';
import { readBody } from './read-body.ts';
import { soundSeconds } from './sound-seconds.ts';
import { withoutRevision } from './without-revision.ts';

/** Longest inference of any model: a slow one is not a lost one. */
export const INFER_TIMEOUT_MS = 120_000;

const HEADER_LENGTH = 'inference-header-content-length';

/** One request for tensors, from its body to the answer. Gives the seconds of sound in it. */
export async function infer(work: AgentRequest, head: CallHead): Promise<Result<number>> {
  const { calls } = work.context;
  const body = await readBody(work.records, head.encoding, calls.budget);
  if (!body.ok) return body;
  try {
    const describe = () => calls.metadata(engineModelOf(work.model), head.version, work.signal);
    const read = await readRequest(body.value.bytes, head, describe);
    if (!read.ok) return read;
    const answered = await run(work, head, read.value);
    if (!answered.ok) return answered;
    const made = makeAnswer(read.value, { ...answered.value, model: head.model });
    if (!made.ok) return made;
    const { headers, chunks, byteLength } = made.value;
    // The slot is free, but the answer stays until the edge has read it.
    if (!calls.budget.take(byteLength)) return no(refuse('pool_busy', undefined, 'answers to callers'));
    const sent = await respond(work.answer, headers, chunks, head.accept).finally(() => calls.budget.give(byteLength));
    if (!sent.ok) return sent;
    return ok(soundSeconds(work.model, samplesIn(read.value)));
  } finally {
    body.value.release();
  }
}

function run(work: AgentRequest, head: CallHead, checked: Checked): Promise<Result<InferResponse>> {
  const { context, ticket, deadline } = work;
  const { sequence } = checked;
  if (!sequence) return callEngine(work, head, checked);
  const { model, version, caller, session } = head;
  const engineModel = engineModelOf(work.model);
  const step = { tenant: ticket.tenant, caller, session, model, engineModel, version, ...sequence };
  // A step that was begun is finished: cancelling it would cancel the whole sequence, at some engines silently.
  const { signal: never } = new AbortController();
  return context.calls.sequences.step({ ...step, inputs: checked.request.inputs }, (engine) => {
    const atMost = Math.min(deadline, context.now() + INFER_TIMEOUT_MS);
    return callEngine({ ...work, signal: never, deadline: atMost }, head, checked, engine);
  });
}

/** Waits for a slot and calls the engine once: a caller's model need not be idempotent. */
function callEngine(
  { context, model, ticket, onStart, signal, deadline, span }: AgentRequest,
  head: CallHead,
  checked: Checked,
  step?: EngineStep,
): Promise<Result<InferResponse>> {
  const engineModel = engineModelOf(model);
  const place = { class: ticket.class, tenant: ticket.tenant, deadline, signal, span, onStart };
  return context.dispatcher.hold(place, async (engineSpan) => {
    const left = Math.min(deadline - context.now(), INFER_TIMEOUT_MS);
    if (left <= 0) return no(refuse('deadline_passed'));
    // Later than its class is the caller's choice, sooner is not, nor a level that does not exist.
    const priority = levelOf(ticket.class, context.calls.levels(engineModel), checked.priority);
    const body = encodeInferRequest({
      inputs: checked.request.inputs,
      ...(checked.request.outputs.length > 0 && { outputs: checked.request.outputs.map(({ name }) => name) }),
      parameters: {
        ...checked.parameters,
        ...(priority > 0 && { priority }),
        timeout: Math.round(Math.min(left * 1_000, checked.timeoutMicros || Number.MAX_SAFE_INTEGER)),
        ...(step && { sequence_id: step.id, sequence_start: step.start, sequence_end: step.end }),
      },
    });
    if (!body.ok) return no(refuse('tensors_invalid', { rule: body.refusal.reason }));
    const timeout = AbortSignal.timeout(left);
    const began = context.now();
    const { chunks } = body.value;
    const headers = { ...body.value.headers, ...traceHeader(engineSpan) };
    const path = `${modelPath(engineModel, head.version)}/infer`;
    const both = AbortSignal.any([signal, timeout]);
    const answer = await context.calls.client.call({ method: 'POST', path, headers, chunks, signal: both });
    const whole = answer.ok ? await readWhole(answer.value) : answer;
    if (timeout.aborted) return no(refuse('deadline_passed'));
    if (!answer.ok || !whole.ok) return whole as Result<never>;
    const { status, headers: received } = answer.value;
    const sequence = checked.sequence && String(checked.sequence.id);
    if (status !== 200) {
      const own = checked.timeoutMicros;
      // The clock counts whole milliseconds.
      const passedMicros = (context.now() - began + 1) * 1_000 >= own ? own : 0;
      const said = withoutRevision(whole.value, model);
      return no(engineRefusal({ status, body: said }, head, { sequence, passedMicros }));
    }
    const decoded = decodeInferResponse(whole.value, received[HEADER_LENGTH] as string | undefined);
    return decoded.ok ? decoded : no(refuse('engine_failed', undefined, `engine answer: ${decoded.refusal.reason}`));
  });
}

/** The engine's answer in the caller's form: its id, its name for the sequence, binary or JSON as it asked. */
function makeAnswer({ request, sequence }: Checked, { parameters, ...answer }: InferResponse) {
  const { id, outputs, binaryOutput } = request;
  const isBinary = (name: string) => outputs.find((output) => output.name === name)?.binary ?? binaryOutput;
  const asJson = answer.outputs.reduce((sum, { name, bytes }) => sum + (isBinary(name) ? 0 : bytes.byteLength), 0);
  if (asJson > INFER_JSON_BYTES) {
    return no(refuse('tensors_invalid', { rule: 'the outputs are too large for JSON; ask for binary data' }));
  }
  const shown = { ...parameters, ...(sequence && { sequence_id: sequence.id }) };
  const { id: _, ...rest } = answer;
  const made = encodeInferResponse(
    { ...rest, ...(id !== undefined && { id }), ...(Object.keys(shown).length > 0 && { parameters: shown }) },
    isBinary,
  );
  return made.ok ? made : no(refuse('tensors_invalid', { rule: `the model's answer: ${made.refusal.reason}` }));
}

/** Samples of sound among the inputs. */
function samplesIn({ request }: Checked): number {
  const audio = request.inputs.find(({ name, datatype }) => name === 'AUDIO' && datatype === 'FP32');
  return audio ? audio.bytes.byteLength / Float32Array.BYTES_PER_ELEMENT : 0;
}
