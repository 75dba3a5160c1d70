import { KiB } from '../../../shared/bytes.ts';
import type { BodyPiece, CallEvent } from '../../../shared/kserve/call.ts';
import { publicText, type Refusal, refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import { refuseWith } from '../../http/refuse.ts';
import type { RelayOutcomes } from '../../routing/relay.ts';

/** Answer that the edge buffers whole, so that it can replace a pool that is lost before its end. */
export const ANSWER_BUFFERED_BYTES = 256 * KiB;

type Event = Exclude<CallEvent | BodyPiece, { type: 'refusal' }>;
type Final = Extract<Event, { type: 'final' }>;
type Head = Extract<Event, { type: 'answer' }>;

/** Events of an answer, and the receiver of its end. */
export interface CallSource extends RelayOutcomes {
  /** Id of the request, for an error within an answer that has begun. */
  readonly request?: string;
  next(): Promise<Result<Event>>;
}

/** Forbids intermediaries to compress: Triton's clients decompress only codings that they requested. */
const UNCHANGED = 'no-store, no-transform';

/**
 * Renders a refusal for Triton's clients: `error` is a string, and only 200 is a success. They decompress no refusal,
 * and some intermediaries ignore `no-transform`, but leave a body alone that has a coding.
 */
export function refuseKserve(refusal: Refusal): Response {
  const { status, headers } = refuseWith(refusal);
  const body = new TextEncoder().encode(JSON.stringify({ error: publicText(refusal) }));
  const own = new Headers(headers);
  own.set('cache-control', UNCHANGED);
  own.set('content-encoding', 'identity');
  own.set('content-length', String(body.byteLength));
  return new Response(body, { status, headers: own });
}

const errorFrame = (refusal: Refusal, { request }: CallSource): string =>
  `data: ${JSON.stringify({ error: publicText(refusal), ...(request !== undefined && { request_id: request }) })}\n\n`;

/**
 * Renders an agent's answer. Buffers a small one, so that a refusal until its end is an ordinary error; streams a large
 * one, its last piece after the end is recorded. The source gets exactly one end, also after an error.
 */
export async function answerCall(source: CallSource, render: RenderRefusal = refuseKserve): Promise<Response> {
  try {
    return await answerEvents(source, render);
  } catch (error) {
    return render(await source.broke(error));
  }
}

/** Renders a refusal for the client of the answer. */
type RenderRefusal = (refusal: Refusal) => Response;

const lost = (detail: string): Refusal => refuse('pool_lost', undefined, detail);

async function answerEvents(source: CallSource, render: RenderRefusal): Promise<Response> {
  const refuseNow = async (refusal: Refusal) => {
    await source.end(no(refusal));
    return render(refusal);
  };
  let head: Head | undefined;
  let pieces: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const event = await source.next();
    if (!event.ok) return refuseNow(event.refusal);
    const { value } = event;
    if (value.type === 'ready') {
      // Another agent starts over. The client has nothing of the lost one.
      [head, pieces, length] = [undefined, [], 0];
    } else if (value.type === 'answer') {
      head = value;
    } else if (value.type === 'body') {
      if (!head) return refuseNow(lost('a body without an answer'));
      pieces.push(value.bytes);
      length += value.bytes.byteLength;
    } else if (value.type === 'final') {
      if (!head) return refuseNow(lost('an end without an answer'));
      const body = Buffer.concat(pieces);
      if (body.length !== head.bytes) return refuseNow(lost('a body of another length than announced'));
      const ended = await source.end(ok(value));
      return ended.ok ? respond(head, body) : render(ended.refusal);
    }
    if (head && head.bytes === undefined) return streamFrames(source, head, pieces);
    if (head && length > ANSWER_BUFFERED_BYTES) return streamPieces(source, head, pieces);
  }
}

/** Compressed already, if the headers say so. */
function respond(head: Head, body: BodyInit): Response {
  const headers = { 'cache-control': UNCHANGED, ...head.headers };
  return new Response(body, { headers, encodeBody: 'manual' });
}

/** A chunk of a stream for the caller; `broken` aborts the connection. */
type Turn = { readonly bytes?: Uint8Array | undefined; readonly over?: boolean; readonly broken?: boolean };

/** A body read at the caller's pace. */
function stream(
  source: CallSource,
  head: Head,
  turn: () => Promise<Turn>,
  onBug: (refusal: Refusal) => Turn,
): Response {
  source.deliver();
  let gone = false;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { bytes, over, broken } = await turn().catch(async (error: unknown) =>
          gone ? { over: true } : onBug(await source.broke(error)),
        );
        if (gone) return;
        if (broken) return controller.error(new Error('cut off'));
        if (bytes) controller.enqueue(bytes);
        if (over) controller.close();
      },
      cancel: () => {
        gone = true;
        source.abandon();
      },
    },
    { highWaterMark: 0 },
  );
  return respond(head, body);
}

/** Streams a large answer. Its status has left, so a late failure aborts the connection. */
function streamPieces(source: CallSource, head: Head, first: readonly Uint8Array[]): Response {
  let held: Uint8Array = Buffer.concat(first);
  let length = held.byteLength;
  const turn = async (): Promise<Turn> => {
    for (;;) {
      const event = await source.next();
      if (event.ok && event.value.type === 'body') {
        const bytes = held;
        held = event.value.bytes;
        length += held.byteLength;
        return { bytes };
      }
      if (event.ok && event.value.type === 'keepalive') continue;
      const isEnd = event.ok && event.value.type === 'final' && length === head.bytes;
      const outcome: Result<Final> = isEnd ? ok(event.value as Final) : event.ok ? no(lost('out of order')) : event;
      const ended = await source.end(outcome);
      return outcome.ok && ended.ok ? { bytes: held, over: true } : { broken: true };
    }
  };
  return stream(source, head, turn, () => ({ broken: true }));
}

/** Streams server-sent events. Every end but the caller's own has a frame. */
function streamFrames(source: CallSource, head: Head, first: readonly Uint8Array[]): Response {
  const encoder = new TextEncoder();
  const chunk = (text: string, over: boolean): Turn => ({ bytes: encoder.encode(text), over });
  const waiting = [...first];
  const turn = async (): Promise<Turn> => {
    const bytes = waiting.shift();
    if (bytes) return { bytes };
    const event = await source.next();
    if (!event.ok) {
      await source.end(event);
      return chunk(errorFrame(event.refusal, source), true);
    }
    const { value } = event;
    if (value.type === 'body') return { bytes: value.bytes };
    if (value.type === 'keepalive') return chunk(': keepalive\n\n', false);
    const outcome: Result<Final> = value.type === 'final' ? ok(value) : no(lost('out of order'));
    const ended = await source.end(outcome);
    const refusal = [outcome, ended].find((one) => !one.ok);
    return refusal && !refusal.ok ? chunk(errorFrame(refusal.refusal, source), true) : { over: true };
  };
  return stream(source, head, turn, (refusal) => chunk(errorFrame(refusal, source), true));
}
