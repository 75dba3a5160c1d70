// Questions that stay open until there is news. Many may follow one upload, and a tenant may open many questions: one
// look at a row serves all that ask about it, and a tenant has so many open and no more.
import { setTimeout as wait } from 'node:timers/promises';
import type { HttpRequest, HttpResponseInit } from '@azure/functions';
import { limits } from '../../shared/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import type { Result } from '../../shared/result.ts';
import type { UploadPlace } from '../../shared/upload/paths.ts';
import { answerNo, answerResult } from '../answer.ts';
import { news } from './asked.ts';
import type { Office } from './office.ts';
import { readCount } from './read-count.ts';

interface Open {
  /** Questions that wait, by tenant. */
  readonly waiting: Map<string, number>;
  /** Looks at rows, by tenant and id. */
  readonly looks: Map<string, { readonly at: number; readonly row: Promise<unknown> }>;
}

const all = new WeakMap<Office, Open>();

/** The row once it is newer than `after`, else 204. */
export async function followNews<Row extends { readonly seq: number }>(
  office: Office,
  { tenant, id }: UploadPlace,
  look: () => Promise<Result<Row>>,
  request: Pick<HttpRequest, 'query'>,
): Promise<HttpResponseInit> {
  const open = all.get(office) ?? { waiting: new Map(), looks: new Map() };
  all.set(office, open);
  const waitMs = (readCount(request, 'wait') ?? 0) * 1_000;
  const waiting = open.waiting.get(tenant) ?? 0;
  const most = limits.uploadFollowers.value;
  if (waitMs > 0 && waiting >= most) return answerNo(refuse('allowance_concurrent', { limit: most }));
  if (waitMs > 0) open.waiting.set(tenant, waiting + 1);
  try {
    const shared = waitMs > 0 ? shareLooks(office, open, `${tenant}/${id}`, look) : look;
    const told = await news(office, shared, readCount(request, 'after') ?? 0, waitMs, (ms) => wait(ms));
    if (told.ok && told.value === undefined) return { status: 204, headers: { 'cache-control': 'no-store' } };
    return answerResult(told);
  } finally {
    if (waitMs > 0) leave(open, tenant);
  }
}

function leave({ waiting, looks }: Open, tenant: string): void {
  const left = (waiting.get(tenant) ?? 1) - 1;
  if (left > 0) waiting.set(tenant, left);
  else waiting.delete(tenant);
  if (waiting.size === 0) looks.clear();
}

/** What another one has just seen is seen. */
function shareLooks<T>(office: Office, { looks }: Open, key: string, look: () => Promise<T>): () => Promise<T> {
  return () => {
    const now = office.now();
    const known = looks.get(key);
    if (known && now - known.at < limits.uploadNewsMs.value) return known.row as Promise<T>;
    // The oldest first: looks that nobody shares any more.
    for (const [other, { at }] of looks) {
      if (now - at < limits.uploadNewsMs.value) break;
      looks.delete(other);
    }
    const row = look();
    looks.delete(key);
    looks.set(key, { at: now, row });
    return row;
  };
}
