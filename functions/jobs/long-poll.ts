// Requests that stay open until a row changes. One read of a row serves all requests that wait for it, and a tenant has a
// bounded number of open requests.
import { setTimeout as wait } from 'node:timers/promises';
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import { UPLOAD_FOLLOWERS_MAX, UPLOAD_WAIT_S } from '../../shared/jobs/limits.ts';
import type { UploadPlace } from '../../shared/jobs/paths.ts';
import type { Result } from '../../shared/result.ts';
import { answerResult } from '../http/answer.ts';
import { TenantLimiter } from '../http/limiter.ts';
import { readCount } from '../http/read-count.ts';
import type { JobContext } from './context.ts';

/** Interval at which a long poll reads the row: soon enough for a person, cheap enough for a table. */
const UPLOAD_POLL_MS = 500;

interface Polls {
  readonly waiting: TenantLimiter;
  /** Reads of rows, by tenant and id. */
  readonly reads: Map<string, { readonly at: number; readonly row: Promise<unknown> }>;
}

const all = new WeakMap<JobContext, Polls>();

/** Answers with the row once its `seq` is above the query's `after`, else 204 when `wait` seconds have passed. */
export async function longPoll<Row extends { readonly seq: number }>(
  context: JobContext,
  { tenant, id }: UploadPlace,
  read: () => Promise<Result<Row>>,
  request: Pick<HttpRequest, 'query'>,
): Promise<HttpResponseInit> {
  const most = UPLOAD_FOLLOWERS_MAX;
  const polls = all.get(context) ?? { waiting: new TenantLimiter(Number.POSITIVE_INFINITY, most), reads: new Map() };
  all.set(context, polls);
  const after = readCount(request, 'after') ?? 0;
  const seconds = Math.min(readCount(request, 'wait') ?? 0, UPLOAD_WAIT_S);
  if (seconds === 0) return answerNewer(await read(), after);
  const until = context.now() + seconds * 1_000;
  return polls.waiting.run(tenant, async () => {
    while (true) {
      const row = await shareRead(context, polls, `${tenant}/${id}`, read);
      if (!row.ok || row.value.seq > after || context.now() >= until) return answerNewer(row, after);
      await wait(UPLOAD_POLL_MS);
    }
  });
}

function answerNewer(row: Result<{ readonly seq: number }>, after: number): HttpResponseInit {
  if (row.ok && row.value.seq <= after) return { status: 204, headers: { 'cache-control': 'no-store' } };
  return answerResult(row);
}

/** Returns a read of the same row that began within `UPLOAD_POLL_MS`, else begins one. */
function shareRead<T>(context: JobContext, { reads }: Polls, key: string, read: () => Promise<T>): Promise<T> {
  const now = context.now();
  const known = reads.get(key);
  if (known && now - known.at < UPLOAD_POLL_MS) return known.row as Promise<T>;
  // The map is in the order of time: drops expired reads.
  for (const [other, { at }] of reads) {
    if (now - at < UPLOAD_POLL_MS) break;
    reads.delete(other);
  }
  const row = read();
  reads.delete(key);
  reads.set(key, { at: now, row });
  return row;
}
