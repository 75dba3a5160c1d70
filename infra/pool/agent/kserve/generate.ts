import type { CallHead } from '../../../../shared/kserve/call.ts';
import { TENSORS_MAX } from '../../../../shared/kserve/infer-request.ts';
import { INFER_JSON_BYTES } from '../../../../shared/kserve/limits.ts';
import { PARAMETERS_MAX } from '../../../../shared/kserve/parameters.ts';
import { parseJson } from '../../../../shared/kserve/parse-json.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { Span } from '../../../../shared/trace/span.ts';
import { type EngineAnswer, modelPath, readWhole, traceHeader } from '../engine/calls/client.ts';
import { engineRefusal } from '../engine/calls/engine-refusal.ts';
import { engineModelOf } from '../models/served-model.ts';
import type { AgentRequest } from '../request/admitted-request.ts';
import { respond, sendPieces } from '../request/respond.ts';
import { INFER_TIMEOUT_MS } from './infer.ts';
import { readBody } from './read-body.ts';
import { frames, isErrorFrame } from './server-sent.ts';
import { soundSeconds } from './sound-seconds.ts';
import { withoutRevision } from './without-revision.ts';

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Names of a generation request that are not the caller's to set. */
const reserved = [
  'sequence_id',
  'sequence_start',
  'sequence_end',
  'priority',
  'timeout',
  'headers',
  'binary_data_output',
];

/** Triton's generate extension: JSON in, one JSON or a stream of them out. */
export async function generate(work: AgentRequest, head: CallHead): Promise<Result<number>> {
  const { calls } = work.context;
  const body = await readBody(work.records, head.encoding, calls.budget);
  if (!body.ok) return body;
  try {
    const checked = checkMessage(body.value.bytes);
    if (!checked.ok) return checked;
    const { ticket, signal, deadline, context, span, onStart } = work;
    const place = { class: ticket.class, tenant: ticket.tenant, deadline, signal, span, onStart };
    const done = await context.dispatcher.hold(place, (engine) => callEngine(work, head, body.value.bytes, engine));
    return done.ok ? ok(soundSeconds(work.model, checked.value)) : done;
  } finally {
    body.value.release();
  }
}

/** The samples of sound in it. */
function checkMessage(body: Uint8Array): Result<number> {
  const wrong = (rule: string) => no(refuse('tensors_invalid', { rule }));
  if (body.byteLength > INFER_JSON_BYTES) return wrong(`the JSON is over ${INFER_JSON_BYTES} bytes`);
  const json = parseJson(body);
  if (!json.ok) return wrong(json.refusal.reason);
  if (!isObject(json.value)) return wrong('the request is not a JSON object');
  const { parameters: nested = {} } = json.value;
  if (!isObject(nested)) return wrong('parameters is not a JSON object');
  const names = [...Object.keys(json.value), ...Object.keys(nested)];
  const most = TENSORS_MAX + PARAMETERS_MAX;
  if (names.length > most) return wrong(`over ${most} inputs and parameters`);
  const taken = names.find((name) => reserved.includes(name) || name.startsWith('triton_'));
  if (taken !== undefined) return wrong(`parameter '${taken.slice(0, 80)}' is reserved`);
  const { AUDIO: audio } = { ...json.value, ...nested };
  return ok(Array.isArray(audio) ? audio.length : 0);
}

/** Aborts after `INFER_TIMEOUT_MS` without progress. */
function watchSilence() {
  const silent = new AbortController();
  const timer = setTimeout(() => silent.abort(), INFER_TIMEOUT_MS);
  return { signal: silent.signal, touch: () => void timer.refresh(), stop: () => clearTimeout(timer) };
}

/** Holds its slot until the last frame was taken: the engine is at work until then. */
async function callEngine(
  work: AgentRequest,
  head: CallHead,
  body: Uint8Array,
  span: Span | undefined,
): Promise<Result<undefined>> {
  const streams = head.task === 'generate_stream';
  const silence = watchSilence();
  try {
    const called = await work.context.calls.client.call({
      method: 'POST',
      path: `${modelPath(engineModelOf(work.model), head.version)}/${head.task}`,
      headers: {
        'content-type': 'application/json',
        accept: streams ? 'text/event-stream' : 'application/json',
        ...traceHeader(span),
      },
      chunks: [body],
      signal: AbortSignal.any([work.signal, silence.signal]),
    });
    const isStream = called.ok && called.value.status === 200 && streams;
    const passed = !called.ok
      ? called
      : isStream
        ? await passFrames(work, called.value, silence.touch)
        : await passWhole(work, head, called.value);
    return silence.signal.aborted ? no(refuse('deadline_passed')) : passed;
  } finally {
    silence.stop();
  }
}

async function passWhole(work: AgentRequest, head: CallHead, answer: EngineAnswer): Promise<Result<undefined>> {
  const whole = await readWhole(answer);
  if (!whole.ok) return whole;
  const said = withoutRevision(whole.value, work.model);
  if (answer.status !== 200) return no(engineRefusal({ status: answer.status, body: said }, head));
  return respond(work.answer, { 'content-type': 'application/json' }, [said], head.accept);
}

/** Every frame is looked at: behind the first one, an engine says that it failed inside a stream that began well. */
async function passFrames(
  { answer, model }: AgentRequest,
  { body }: EngineAnswer,
  touch: () => void,
): Promise<Result<undefined>> {
  let begun = false;
  for await (const frame of frames(body)) {
    touch();
    if (!frame.ok) return frame;
    if (isErrorFrame(frame.value)) return no(refuse('engine_failed', undefined, 'an error frame'));
    if (!begun) await answer.send({ type: 'answer', headers: { 'content-type': 'text/event-stream' } });
    begun = true;
    const frameBytes = new TextEncoder().encode(`${frame.value}\n\n`);
    const sent = await sendPieces(answer, withoutRevision(frameBytes, model));
    if (!sent.ok) return sent;
  }
  return begun ? ok(undefined) : no(refuse('engine_failed', undefined, 'a stream without a frame'));
}
