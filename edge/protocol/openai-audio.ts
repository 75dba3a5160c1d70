import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { renderTranscript } from '../../shared/speech/openai-answer.ts';
import { readKnownForm, type TranscriptionForm } from '../../shared/speech/openai-form.ts';
import type { AnswerEvent, Final, Segment } from '../../shared/speech/transcript.ts';
import { wordsIn } from '../../shared/speech/words.ts';
import { deltaFrame, doneFrame, EVENT_STREAM, errorFrame, finalFrame, keepaliveFrame } from '../http/openai-stream.ts';
import { refuseWith } from '../http/refuse.ts';

/**
 * Four hours of fast speech: 4.5 words a second, or 6.8 characters of Mandarin. A transcript is in memory whole for formats
 * that need it.
 */
export const TRANSCRIPT_WORDS_MAX = 98_304;

type NextEvent = Result<Exclude<AnswerEvent, { type: 'refusal' }>>;

/** Events of a transcription, and the receiver of its end. */
export interface Source {
  next(): Promise<NextEvent>;
  /** Reports whether the form that the agent read may be served. */
  check(fields: Readonly<Record<string, readonly string[]>>): Result<undefined>;
  /** Marks the answer as visible to the caller: no retry after it. */
  deliver(): void;
  /** Ends the request. Returns a refusal when the result must not be sent. */
  end(outcome: Result<Final>): Promise<Result<undefined>>;
  /** Ends the request after a bug. Returns the refusal for the caller. */
  broke(error: unknown): Promise<Refusal>;
  /** Ends the request after the caller disconnected. */
  abandon(): void;
  /** Id of the request, for an error within an answer that has begun. */
  readonly request?: string;
}

/** Events received from the current agent. */
interface Received {
  form: TranscriptionForm | undefined;
  segments: Segment[];
  words: number;
}

const nothingReceived = (): Received => ({ form: undefined, segments: [], words: 0 });

/**
 * Turns the neutral events of a transcription into what OpenAI's clients read: one body when all is known, or frames
 * as segments come when the form says `stream`. Until the first byte leaves, a refusal is an ordinary error response. The
 * source gets exactly one end, also after an error.
 */
export async function answerTranscription(source: Source): Promise<Response> {
  try {
    let received = nothingReceived();
    for (;;) {
      const event = await source.next();
      if (!event.ok) return await refuseNow(source, event.refusal);
      const { value } = event;
      // Another agent starts over; events of the lost one were never sent.
      if (value.type === 'ready') received = nothingReceived();
      const taken = takeIn(received, value, source);
      if (!taken.ok) return await refuseNow(source, taken.refusal);
      if (received.form?.stream && value.type !== 'ready' && value.type !== 'form') {
        source.deliver();
        return streamFrames(source, received, value.type === 'final' ? value : undefined);
      }
      if (value.type === 'final') return await answerWhole(source, received, value);
    }
  } catch (error) {
    return refuseWith(await source.broke(error));
  }
}

/** Adds one event to the received ones. */
function takeIn(
  received: Received,
  event: Exclude<AnswerEvent, { type: 'refusal' }>,
  source: Source,
): Result<undefined> {
  if (event.type === 'form') {
    const form = readKnownForm(event.fields);
    if (!form.ok) return form;
    received.form = form.value;
    return source.check(event.fields);
  }
  if (event.type === 'segment') {
    received.segments.push(event);
    received.words += event.words.length || wordsIn(event.text).length;
    if (received.words > TRANSCRIPT_WORDS_MAX) return no(refuse('engine_failed', undefined, 'too many words'));
  }
  return ok(undefined);
}

async function answerWhole(source: Source, { form, segments }: Received, final: Final): Promise<Response> {
  if (!form) return refuseNow(source, refuse('pool_lost', undefined, 'a final event without the form'));
  const { contentType, body } = renderTranscript({ segments, final }, form);
  const ended = await source.end(ok(final));
  if (!ended.ok) return refuseWith(ended.refusal);
  return new Response(body, { headers: { 'content-type': contentType, 'cache-control': 'no-store' } });
}

async function refuseNow(source: Source, refusal: Refusal): Promise<Response> {
  await source.end(no(refusal));
  return refuseWith(refusal);
}

/** Streams frames, each made when the caller reads. Every end but the caller's own has a frame. */
function streamFrames(source: Source, received: Received, final: Final | undefined): Response {
  const encoder = new TextEncoder();
  const next = frameReader(source, received, final);
  let gone = false;
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const write = ({ text, over }: Chunk) => {
          controller.enqueue(encoder.encode(text));
          if (over) controller.close();
        };
        try {
          write(await next());
        } catch (error) {
          if (!gone) write({ text: errorFrame(await source.broke(error), source.request), over: true });
        }
      },
      cancel: () => {
        gone = true;
        source.abandon();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(stream, { headers: { 'content-type': EVENT_STREAM, 'cache-control': 'no-store' } });
}

interface Chunk {
  readonly text: string;
  readonly over: boolean;
}

/** Returns a function that resolves with the next frame. */
function frameReader(source: Source, received: Received, final: Final | undefined): () => Promise<Chunk> {
  let sent = 0;
  let last = final;
  return async () => {
    const logprobs = received.form?.logprobs ?? false;
    for (;;) {
      if (sent < received.segments.length) {
        const frames = received.segments
          .slice(sent)
          .map((segment, index) => deltaFrame(segment, received.segments[sent + index - 1]?.text ?? '', logprobs));
        sent = received.segments.length;
        return { text: frames.join(''), over: false };
      }
      if (last) {
        // Rendered before the end is recorded: a transcript that cannot be rendered was not served.
        const text = finalFrame({ segments: received.segments, final: last }, logprobs) + doneFrame;
        const ended = await source.end(ok(last));
        return { text: ended.ok ? text : errorFrame(ended.refusal, source.request), over: true };
      }
      const event = await source.next();
      const taken: Result<undefined> = event.ok ? takeIn(received, event.value, source) : event;
      if (!event.ok || !taken.ok) {
        const { refusal } = event.ok ? (taken as { refusal: Refusal }) : event;
        await source.end(no(refusal));
        return { text: errorFrame(refusal, source.request), over: true };
      }
      if (event.value.type === 'keepalive') return { text: keepaliveFrame, over: false };
      if (event.value.type === 'final') last = event.value;
    }
  };
}
