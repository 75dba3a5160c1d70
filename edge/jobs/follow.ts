import { UPLOAD_FOLLOWERS_MAX, UPLOAD_WAIT_S } from '../../shared/jobs/limits.ts';
import { Limiter } from '../../shared/limiter.ts';
import { refuse } from '../../shared/refusal.ts';
import type { Result } from '../../shared/result.ts';
import { EVENT_STREAM } from '../http/openai-stream.ts';
import { refuseWith } from '../http/refuse.ts';

/** Failed polls in a row, each with its own deadline, before a follower gets the failure. */
const FOLLOW_FAILURES_MAX = 3;

/** Age after which a follower's slot is free, ms: its client does not read, and it makes no request. */
const QUIET_MS = 3 * UPLOAD_WAIT_S * 1_000;

/** Followers of each tenant in this isolate: each holds a request to the functions open. */
const followers = new Limiter(UPLOAD_FOLLOWERS_MAX, QUIET_MS);

/** A resource with a sequence number that rises with each change. */
interface Following<T extends { readonly seq: number }> {
  /** Owner of the resource. */
  readonly tenant: string;
  /** Milliseconds since 1970. */
  now(): number;
  /**
   * Returns the newest state after `after`, within `waitSeconds`; nothing when there is none or `signal`
   * aborts.
   */
  look(after: number, waitSeconds: number, signal: AbortSignal): Promise<Result<{ readonly value: T | undefined }>>;
  isOver(row: T): boolean;
  show(row: T): unknown;
}

/**
 * Streams server-sent events, one for each change, the current state first, until the resource has ended. A
 * client that reconnects sends its position (`last-event-id`); it misses states in between, never the newest.
 */
export async function follow<T extends { readonly seq: number }>(
  request: Request,
  { tenant, now, look, isOver, show }: Following<T>,
): Promise<Response> {
  const known = readSeq(request.headers.get('last-event-id'));
  const frame = (row: T): string =>
    `id: ${row.seq}\nevent: ${isOver(row) ? 'end' : 'change'}\ndata: ${JSON.stringify(show(row))}\n\n`;
  // The first lookup precedes the answer, so that a refusal is an ordinary one and an ended resource is
  // visible.
  const gone = new AbortController();
  const first = await look(0, 0, gone.signal);
  if (!first.ok) return refuseWith(first.refusal);
  const row = first.value.value;
  let pending: T | undefined = row && (row.seq > known || isOver(row)) ? row : undefined;
  const slot = followers.enter(tenant, now());
  if (!slot) return refuseWith(refuse('allowance_concurrent', { limit: UPLOAD_FOLLOWERS_MAX }));
  let seq = known;
  let failures = 0;

  const next = async (): Promise<{ text: string; over: boolean }> => {
    if (!pending) {
      slot.renew(now());
      const news = await look(seq, UPLOAD_WAIT_S, gone.signal);
      // The functions may be restarting; after several failures the stream ends, and the client reconnects.
      if (!news.ok) return { text: ': unavailable\n\n', over: ++failures >= FOLLOW_FAILURES_MAX };
      failures = 0;
      pending = news.value.value;
    }
    if (!pending) return { text: ': waiting\n\n', over: false };
    const row = pending;
    pending = undefined;
    seq = row.seq;
    return { text: frame(row), over: isOver(row) };
  };
  const end = () => {
    slot.leave();
    gone.abort();
  };
  return new Response(stream(next, end), { headers: { 'content-type': EVENT_STREAM, 'cache-control': 'no-store' } });
}

function readSeq(text: string | null): number {
  const seq = Number(text ?? 0);
  return Number.isSafeInteger(seq) && seq > 0 ? seq : 0;
}

/** A stream that makes each event when the client has capacity for it. */
function stream(next: () => Promise<{ text: string; over: boolean }>, end: () => void): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let over = false;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const chunk = await next();
        if (over) return;
        controller.enqueue(encoder.encode(chunk.text));
        if (!chunk.over) return;
        end();
        controller.close();
      },
      cancel() {
        over = true;
        end();
      },
    },
    { highWaterMark: 0 },
  );
}
