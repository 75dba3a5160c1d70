// `GET /v1/audit/stream?from=CURSOR`: streams a tenant's leaves from any position of any year's log, and
// continues in the next log at its end. The cursor is year and index: a reader resumes after its last leaf,
// and repeats have the same position.
import { type StreamPage, streamPage } from '../../shared/audit/bundle/contract.ts';
import { formatCursor, readCursor } from '../../shared/audit/bundle/cursor.ts';
import { refuse } from '../../shared/refusal.ts';
import type { Result } from '../../shared/result.ts';
import { admit } from '../auth/admit.ts';
import type { RequestContext } from '../context.ts';
import { refuseWith } from '../http/refuse.ts';
import { callAuditFunctionsFor } from './call-functions.ts';
import { zoneOf } from './exports.ts';

/** Life of one streaming answer; the reader continues from its last index. */
const LOG_STREAM_S = 600;
/** Pause between polls at the end of a log, which is written once a second. */
const LOG_STREAM_PAUSE_MS = 1_000;

interface Shape {
  readonly type: string;
  write(one: StreamPage['data'][number], year: number): string;
  /** Renders an idle line with the reader's position. */
  idle(next: string): string;
}

const ndjson: Shape = {
  type: 'application/x-ndjson',
  write: (one) => `${JSON.stringify(one)}\n`,
  idle: () => '\n',
};
const events: Shape = {
  type: 'text/event-stream',
  write: (one, year) => `id: ${formatCursor(year, one.data.index)}\nevent: leaf\ndata: ${JSON.stringify(one)}\n\n`,
  idle: (next) => `: ${next}\n\n`,
};

export async function streamLeaves(request: Request, context: RequestContext): Promise<Response> {
  const claims = await admit(request, 'audit', context);
  if (!claims.ok) return refuseWith(claims.refusal);
  const query = new URL(request.url).searchParams;
  const zone = zoneOf(claims.value, query.get('zone') ?? undefined, context);
  if (!zone.ok) return refuseWith(zone.refusal);
  const shape = request.headers.get('accept')?.includes(events.type) ? events : ndjson;
  const from = startOf(query.get('from'), request.headers.get('last-event-id'));
  if (from === undefined)
    return refuseWith(refuse('field_invalid', { field: 'from', rule: 'must be a place in a log, as 2026-500000' }));
  const { tenant } = claims.value;
  const fetchPage = (at: string) =>
    callAuditFunctionsFor(
      { zone: zone.value, path: `/stream/${zone.value}/${tenant}?from=${at}` },
      streamPage,
      claims.value,
      context,
    );
  const follow = query.get('follow') ?? 'true';
  if (follow !== 'true' && follow !== 'false')
    return refuseWith(refuse('field_invalid', { field: 'follow', rule: 'must be "true" or "false"' }));
  // The first page decides between stream and refusal.
  const first = await fetchPage(from);
  if (!first.ok) return refuseWith(first.refusal);
  const body = bodyOf(first.value, fetchPage, { shape, follow: follow === 'true' }, context);
  return new Response(body, { headers: { 'content-type': shape.type, 'cache-control': 'no-store' } });
}

/** Returns the start: after a browser's last event, or the position in the query. */
function startOf(from: string | null, last: string | null): string | undefined {
  const cursor = readCursor(last ?? from ?? '0');
  if (!cursor) return undefined;
  const { year } = cursor;
  const index = last === null ? cursor.index : cursor.index + 1;
  return year === undefined ? String(index) : formatCursor(year, index);
}

function bodyOf(
  first: StreamPage,
  fetchPage: (at: string) => Promise<Result<StreamPage>>,
  { shape, follow }: { readonly shape: Shape; readonly follow: boolean },
  { runtime }: RequestContext,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const until = runtime.now() + LOG_STREAM_S * 1_000;
  let page: StreamPage | undefined = first;
  let next = first.next;
  const wait = () => runtime.after(LOG_STREAM_PAUSE_MS).rings;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          const fetched = page ? { ok: true as const, value: page } : await fetchPage(next);
          page = undefined;
          // A refusal cannot be sent inside a started stream; the reader reconnects from its position.
          if (!fetched.ok) return controller.close();
          const { data, ended, year } = fetched.value;
          next = fetched.value.next;
          if (data.length > 0) controller.enqueue(encoder.encode(data.map((one) => shape.write(one, year)).join('')));
          if ((ended && !follow) || runtime.now() >= until) return controller.close();
          if (data.length > 0) return;
          if (!ended) continue;
          await wait();
          // Keeps the connection alive and detects a closed reader.
          return controller.enqueue(encoder.encode(shape.idle(next)));
        }
      },
    },
    { highWaterMark: 0 },
  );
}
