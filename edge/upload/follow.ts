import { limits } from '../../shared/limits.ts';
import type { Result } from '../../shared/result.ts';
import { EVENT_STREAM } from '../../shared/speech/openai-stream.ts';
import { refuseWith } from '../refuse.ts';

/** Something that changes, with a number that rises each time. */
interface Following<T extends { readonly seq: number }> {
  /** The newest state later than `after`, within so many seconds; nothing when there is none. */
  look(after: number, waitSeconds: number): Promise<Result<{ readonly value: T | undefined }>>;
  isOver(row: T): boolean;
  tell(row: T): unknown;
}

/**
 * Server-sent events, one for each change, the current state first. It ends when that is over. A client that comes back
 * says where it was (`last-event-id`), and misses states in between, never the newest.
 */
export async function follow<T extends { readonly seq: number }>(
  request: Request,
  { look, isOver, tell }: Following<T>,
): Promise<Response> {
  const known = readSeq(request.headers.get('last-event-id'));
  const frame = (row: T): string =>
    `id: ${row.seq}\nevent: ${isOver(row) ? 'end' : 'change'}\ndata: ${JSON.stringify(tell(row))}\n\n`;
  // The first look is at once, so that a "no" is an ordinary one, and what is over already says so.
  const first = await look(0, 0);
  if (!first.ok) return refuseWith(first.refusal);
  const now = first.value.value;
  let pending: T | undefined = now && (now.seq > known || isOver(now)) ? now : undefined;
  let seq = known;
  let failures = 0;

  const next = async (): Promise<{ text: string; over: boolean }> => {
    if (!pending) {
      const news = await look(seq, limits.uploadWaitSeconds.value);
      // The functions may be starting anew; a client that hears nothing but this comes back by itself.
      if (!news.ok) return { text: ': unavailable\n\n', over: ++failures >= FAILURES_MAX };
      failures = 0;
      pending = news.value.value;
    }
    if (!pending) return { text: ': waiting\n\n', over: false };
    const row = pending;
    pending = undefined;
    seq = row.seq;
    return { text: frame(row), over: isOver(row) };
  };
  return new Response(stream(next), { headers: { 'content-type': EVENT_STREAM, 'cache-control': 'no-store' } });
}

/** Looks in a row that fail; each has its own deadline. */
const FAILURES_MAX = 3;

function readSeq(text: string | null): number {
  const seq = Number(text ?? 0);
  return Number.isSafeInteger(seq) && seq > 0 ? seq : 0;
}

/** Each piece is made when the client has room for it. */
function stream(next: () => Promise<{ text: string; over: boolean }>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { text, over } = await next();
        controller.enqueue(encoder.encode(text));
        if (over) controller.close();
      },
    },
    { highWaterMark: 0 },
  );
}
