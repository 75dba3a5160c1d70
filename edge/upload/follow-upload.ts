import { limits } from '../../shared/limits.ts';
import { EVENT_STREAM } from '../../shared/speech/openai-stream.ts';
import { type UploadRow, uploadRow } from '../../shared/upload/contract.ts';
import { isOver } from '../../shared/upload/state.ts';
import type { RequestContext } from '../context.ts';
import { refuseWith } from '../refuse.ts';
import { admit } from '../tenant/admit.ts';
import { SCOPE } from './create-upload.ts';
import { askAboutUpload } from './find-upload.ts';
import { tellUpload } from './tell.ts';

/**
 * `GET /v1/uploads/{id}/events`: server-sent events, one for each change of the upload, the current state first. It ends
 * when the upload is over. A client that comes back says where it was (`last-event-id`), and misses states in between,
 * never the newest.
 */
export async function followUpload(request: Request, context: RequestContext, id: string): Promise<Response> {
  const claims = await admit(request, SCOPE, context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const look = (after: number, waitSeconds: number) => {
    const below = `/events?after=${after}&wait=${waitSeconds}`;
    return askAboutUpload(id, { method: 'GET', below, waitSeconds }, uploadRow, claims.value, context);
  };
  const known = readSeq(request.headers.get('last-event-id'));
  // The first look is at once, so that a "no" is an ordinary one, and what is over already says so.
  const first = await look(0, 0);
  if (!first.ok) return refuseWith(first.refusal);
  const now = first.value.value;
  let pending: UploadRow | undefined = now && (now.seq > known || isOver(now.status)) ? now : undefined;
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
    return { text: frame(row), over: isOver(row.status) };
  };
  return new Response(stream(next), { headers: { 'content-type': EVENT_STREAM, 'cache-control': 'no-store' } });
}

/** Looks in a row that fail; each has its own deadline. */
const FAILURES_MAX = 3;

function readSeq(text: string | null): number {
  const seq = Number(text ?? 0);
  return Number.isSafeInteger(seq) && seq > 0 ? seq : 0;
}

const frame = (row: UploadRow): string =>
  `id: ${row.seq}\nevent: ${isOver(row.status) ? 'end' : 'change'}\ndata: ${JSON.stringify(tellUpload(row))}\n\n`;

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
