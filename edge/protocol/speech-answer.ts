import { toBase64 } from '../../shared/base64.ts';
import type { BodyPiece, CallEvent } from '../../shared/kserve/call.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { EVENT_STREAM, errorFrame, keepaliveFrame } from '../http/openai-stream.ts';
import type { RelayOutcomes } from '../routing/relay.ts';

type Event = Exclude<CallEvent | BodyPiece, { type: 'refusal' }>;
type Final = Extract<Event, { type: 'final' }>;

/** Events of an answer with speech, and the receiver of its end. */
export interface SpeechSource extends RelayOutcomes {
  readonly request: string;
  next(): Promise<Result<Event>>;
}

/** The start of an answer: its type and its first sound. */
export interface SpeechStart {
  readonly contentType: string;
  readonly revision: string;
  readonly sound: Uint8Array;
}

const lost = (detail: string): Result<never> => no(refuse('pool_lost', undefined, detail));

/** Waits for the first sound. Until then a refusal is an ordinary one, and another agent may take over. */
export async function startOf(source: SpeechSource): Promise<Result<SpeechStart>> {
  let contentType: string | undefined;
  let revision = '';
  for (;;) {
    const event = await source.next();
    if (!event.ok) return event;
    const { value } = event;
    if (value.type === 'ready') [revision, contentType] = [value.revision, undefined];
    if (value.type === 'answer') contentType = value.headers['content-type'];
    if (value.type === 'final') return lost('an end without sound');
    if (value.type !== 'body') continue;
    if (contentType === undefined) return lost('sound without an answer');
    return ok({ contentType, revision, sound: value.bytes });
  }
}

/** Returns the next sound, `undefined` for a keepalive, or the end. */
export async function nextOf(source: SpeechSource): Promise<Result<Uint8Array | Final | undefined>> {
  const event = await source.next();
  if (!event.ok) return event;
  const { value } = event;
  if (value.type === 'body') return ok(value.bytes);
  if (value.type === 'keepalive') return ok(undefined);
  return value.type === 'final' ? ok(value) : lost('out of order');
}

/** Bytes for the client; `undefined` sends nothing. */
interface Framing {
  readonly sound: (bytes: Uint8Array) => Uint8Array;
  readonly keepalive: Uint8Array | undefined;
  readonly done: (final: Final) => Uint8Array | undefined;
  readonly failed: (refusal: Refusal, request: string) => Uint8Array | undefined;
}

const encoder = new TextEncoder();
const frame = (data: object) => encoder.encode(`data: ${JSON.stringify(data)}\n\n`);

const bare: Framing = { sound: (bytes) => bytes, keepalive: undefined, done: () => undefined, failed: () => undefined };

/** OpenAI's events. Nothing is counted in tokens here, so there are none; `seconds` is ours. */
const framed: Framing = {
  sound: (bytes) => frame({ type: 'speech.audio.delta', audio: toBase64(bytes) }),
  keepalive: encoder.encode(keepaliveFrame),
  done: ({ durationSeconds: seconds }) =>
    frame({
      type: 'speech.audio.done',
      usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0, seconds },
    }),
  failed: (refusal, request) => encoder.encode(errorFrame(refusal, request)),
};

export interface SpeechRendering {
  /** Wraps the sound in server-sent events. */
  readonly framed?: boolean;
  readonly refuse: (refusal: Refusal) => Response;
  readonly headers: (start: SpeechStart) => Readonly<Record<string, string>>;
}

/**
 * Renders speech as it is made. A failure before the first sound is an ordinary refusal; a later one resets the
 * connection, so that no client takes a part for the whole.
 */
export async function answerSpeech(source: SpeechSource, rendering: SpeechRendering): Promise<Response> {
  try {
    const start = await startOf(source);
    if (!start.ok) {
      await source.end(start);
      return rendering.refuse(start.refusal);
    }
    source.deliver();
    const { contentType } = start.value;
    const headers = {
      'cache-control': 'no-store, no-transform',
      'content-type': rendering.framed ? EVENT_STREAM : contentType,
      ...rendering.headers(start.value),
    };
    return new Response(bodyOf(source, start.value.sound, rendering.framed ? framed : bare), { headers });
  } catch (error) {
    return rendering.refuse(await source.broke(error));
  }
}

/** Speech read at the client's pace. It ends once its end is recorded. */
function bodyOf(source: SpeechSource, first: Uint8Array, framing: Framing): ReadableStream<Uint8Array> {
  let waiting: Uint8Array | undefined = first;
  let failed = false;
  let gone = false;

  async function step(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const event = waiting ? ok(waiting) : await nextOf(source);
    waiting = undefined;
    if (gone) return;
    if (event.ok && event.value instanceof Uint8Array) return controller.enqueue(framing.sound(event.value));
    if (event.ok && event.value === undefined) {
      if (framing.keepalive) controller.enqueue(framing.keepalive);
      return framing.keepalive ? undefined : step(controller);
    }
    const outcome = event as Result<Final>;
    const ended = await source.end(outcome);
    if (!outcome.ok || !ended.ok) return fail(controller, outcome.ok ? ended : outcome);
    const done = framing.done(outcome.value);
    if (done) controller.enqueue(done);
    controller.close();
  }

  function fail(controller: ReadableStreamDefaultController<Uint8Array>, outcome: Result<unknown>): void {
    const bytes = outcome.ok ? undefined : framing.failed(outcome.refusal, source.request);
    failed = true;
    // The error comes with the next read, so that this frame still leaves.
    if (bytes) controller.enqueue(bytes);
    else controller.error(new Error('cut off'));
  }

  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (failed) return controller.error(new Error('cut off'));
        await step(controller).catch(async (error: unknown) => {
          const refusal = await source.broke(error);
          if (!gone) fail(controller, no(refusal));
        });
      },
      cancel() {
        gone = true;
        source.abandon();
      },
    },
    { highWaterMark: 0 },
  );
}
