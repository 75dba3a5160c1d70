// Deliveries on their way into a log: verified, with salts and commitments made, and not yet in any order.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { RECORD_KEY_BYTES, toBase64Url } from '../../../shared/audit/commitment.ts';
import type { Delivery } from '../../../shared/audit/delivery.ts';
import { draftLeaf, type LeafDraft, leafDraft, reportedEvent } from '../../../shared/audit/leaf.ts';
import { KiB } from '../../../shared/bytes.ts';
import { digits } from '../log/log-names.ts';
import type { Hide } from '../sidecar/hide.ts';

/**
 * Leaf before it has its index, so that in UTF-8 with the index it stays within the 65,535 bytes of an entry.
 */
const LEAF_CHARACTERS = 20 * KiB;

const received = z.object({
  v: z.literal(1),
  producer: z.string(),
  epoch: z.string(),
  oldest: z.number().int(),
  /** Number of the first event. */
  from: z.number().int(),
  /** ms since 1970. */
  at: z.number().int(),
  drafts: z.array(leafDraft),
  /** Hidden values of each draft, encrypted; null without any. */
  hidden: z.array(z.string().nullable()),
});
export type Received = z.infer<typeof received>;

export const readReceived = (bytes: Uint8Array): Received =>
  received.parse(JSON.parse(new TextDecoder().decode(bytes)));

/**
 * A delivery as it waits for the log; `undefined` when nothing is in it or its rows are not in their order. An event that
 * cannot be read still has its place: a record that gets stuck would hold up all behind it.
 */
export async function receive(delivery: Delivery, now: number, hide: Hide): Promise<Received | undefined> {
  const { v, producer, epoch, oldest, rows } = delivery;
  const events: { pseq: number; t: number; event: unknown }[] = [];
  for (const { to, t, events: some } of rows) {
    const first = to - some.length + 1;
    const expected = events.at(-1)?.pseq;
    if (first < 1 || (expected !== undefined && first !== expected + 1)) return undefined;
    for (const [at, event] of some.entries()) events.push({ pseq: first + at, t, event });
  }
  const [start] = events;
  if (!start) return undefined;
  const drafted = await Promise.all(events.map(({ t, event }) => draft(event, t, hide)));
  return {
    ...{ v, producer, epoch, oldest, from: start.pseq, at: now },
    drafts: drafted.map((one) => one.draft),
    hidden: drafted.map((one) => one.hidden),
  };
}

const newRecordKey = (): Uint8Array => crypto.getRandomValues(new Uint8Array(RECORD_KEY_BYTES));

async function draft(event: unknown, t: number, hide: Hide): Promise<{ draft: LeafDraft; hidden: string | null }> {
  const parsed = reportedEvent.safeParse(event);
  const made = parsed.success ? await draftLeaf(parsed.data, t, newRecordKey) : undefined;
  if (!made || JSON.stringify(made.draft).length > LEAF_CHARACTERS) {
    const digest = createHash('sha256')
      .update(JSON.stringify(event) ?? '')
      .digest('hex');
    const id = parsed.success ? parsed.data.id : crypto.randomUUID();
    const draft = { v: 1 as const, id, type: 'event.unreadable', by: 'edge', t: { origin: t, edge: t }, digest };
    return { draft, hidden: null };
  }
  const { disclosures } = made;
  if (!disclosures) return { draft: made.draft, hidden: null };
  // Only what hides something has something to keep.
  const draft = { ...made.draft, ret: hide.retention?.(made.draft.tn) ?? 'standard' };
  return { draft, hidden: await hide(draft, disclosures) };
}

/** Name of a delivery: equal events have an equal name, so that a repeat changes nothing. */
export function nameOfReceived(zone: string, { producer, epoch, oldest, from, drafts }: Received): string {
  const outbox = toBase64Url(createHash('sha256').update(producer).digest().subarray(0, 12));
  // That nothing before it will come any more is news, too.
  const first = oldest >= from ? '-first' : '';
  return `${zone}/${outbox}/${epoch}/${digits(from)}-${digits(from + drafts.length - 1)}${first}`;
}
