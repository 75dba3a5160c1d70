// A notice on its way: one delivery, what came of it, and when the next one is due.

import { isOver } from '../../shared/jobs/state.ts';
import type { Notice } from '../store/notices.ts';
import type { JobContext } from './context.ts';
import { noticeId, noticeOf } from './notice.ts';
import type { Post, Posted } from './post.ts';
import { TIMED_OUT } from './post.ts';
import { deliveryKey, dueOf, MINUTE, rowOf, type UploadRecord } from './record.ts';
import { amend, readUpload } from './step.ts';
import { signNotice, webhookSecret } from './webhook.ts';
import { createWebhookLimiter, type WebhookLimiter } from './webhook-limiter.ts';

/** Longest delay of a notice whose tenant has no free slot: one is free by then. */
const WEBHOOK_DELAY_S = 5;
/** Deliveries of one notice over about a day: 1 min, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h apart. */
export const WEBHOOK_TRIES_MAX = 8;

/** Pauses after each delivery that failed: those of standard-webhooks, as far as a look each minute allows. */
const PAUSES_MS = [MINUTE, 5 * MINUTE, 30 * MINUTE, 120 * MINUTE, 300 * MINUTE, 600 * MINUTE, 600 * MINUTE];

/** Limiters by instance. */
const allPlaces = new WeakMap<JobContext, WebhookLimiter>();

function placesOf(context: JobContext): WebhookLimiter {
  const places = allPlaces.get(context) ?? createWebhookLimiter(() => context.now());
  allPlaces.set(context, places);
  return places;
}

export async function deliver(context: JobContext, post: Post, { tenant, id, run, tries }: Notice): Promise<void> {
  const place = { tenant, id };
  const record = await readUpload(context, place);
  if (!record || !isCurrent(record, run, tries)) return;
  const url = record.request.callback;
  const secret = webhookSecret(context.settings, tenant);
  if (url === undefined || secret === undefined) return end(context, record, 'failed');
  const free = placesOf(context).take(tenant, new URL(url).host);
  if (free === 'full') return putOff(context, record);
  const body = JSON.stringify(noticeOf(rowOf(record)));
  const at = context.now();
  const seconds = Math.floor(at / 1_000);
  const name = noticeId({ id, run });
  const headers = {
    'content-type': 'application/json',
    'webhook-id': name,
    'webhook-timestamp': String(seconds),
    'webhook-signature': signNotice(secret, name, seconds, body),
  };
  let posted: Posted = { failure: TIMED_OUT };
  try {
    if (free !== 'hangs') posted = await post(url, headers, body);
  } finally {
    if (free !== 'hangs') free.end(posted);
  }
  const delivery = { at, milliseconds: context.now() - at, run, ...posted };
  await context.rows.commit(tenant, [{ type: 'put', key: deliveryKey(id, run, tries), value: delivery }]);
  context.log({ what: 'notice', tenant, upload: id, count: tries + 1, detail: wordFor(posted) });
  await end(context, record, decideNext(posted, tries));
}

/** Back into the queue for a moment. The timer must not add another one meanwhile. */
async function putOff(context: JobContext, { tenant, id, state, noticeTries }: UploadRecord): Promise<void> {
  const seconds = 1 + Math.floor(Math.random() * WEBHOOK_DELAY_S);
  await amend(context, { tenant, id }, (seen) => {
    if (!isCurrent(seen, state.run, noticeTries)) return undefined;
    const now = context.now();
    const after: UploadRecord = { ...seen, noticeDue: now + seconds * 1_000 + 2 * MINUTE };
    return { ...after, due: dueOf(after, now) };
  });
  await context.notices.send({ tenant, id, run: state.run, tries: noticeTries }, seconds);
}

const isCurrent = ({ state, notice, noticeTries }: UploadRecord, run: number, tries: number): boolean =>
  isOver(state.status) && state.run === run && notice === 'pending' && noticeTries === tries;

const wordFor = (posted: Posted): string => ('status' in posted ? String(posted.status) : posted.failure);

/** 2xx is success; 410 ends the deliveries. */
export function decideNext(posted: Posted, tries: number): 'delivered' | 'failed' | 'again' {
  const status = 'status' in posted ? posted.status : 0;
  if (status >= 200 && status < 300) return 'delivered';
  return status === 410 || tries + 1 >= WEBHOOK_TRIES_MAX ? 'failed' : 'again';
}

async function end(context: JobContext, before: UploadRecord, next: 'delivered' | 'failed' | 'again'): Promise<void> {
  const { tenant, id, state, noticeTries } = before;
  await amend(context, { tenant, id }, (seen) => {
    if (!isCurrent(seen, state.run, noticeTries)) return undefined;
    const now = context.now();
    const tries = noticeTries + 1;
    const pause = PAUSES_MS[noticeTries] ?? (PAUSES_MS.at(-1) as number);
    const after: UploadRecord =
      next === 'again'
        ? { ...seen, noticeTries: tries, noticeDue: now + pause }
        : { ...seen, noticeTries: tries, notice: next };
    return { ...after, state: { ...seen.state, seq: seen.state.seq + 1 }, due: dueOf(after, now) };
  });
}
