// Gaps of the logs of a zone, as rows of the index. The log's own entries are the truth; the rows say where they are.
import type { z } from 'zod';
import {
  AUDIT_UNENDED_MS,
  acceptanceIn,
  type Gap,
  gap,
  gapIn,
  isOverdue,
  isSameGap,
} from '../../../shared/audit/gaps.ts';
import type { Leaf } from '../../../shared/audit/leaf.ts';
import { endOf, type Row, type Rows } from '../../store/rows.ts';
import { type IndexRow, keyOf, type Position, readKey } from './entry-rows.ts';

/**
 * Gaps that one answer lists and health counts, oldest first: an operator accepts each by hand, and no more
 * than this in a day.
 */
export const AUDIT_GAPS_LISTED_MAX = 1_000;

const partitionOf = (zone: string): string => `gap!${zone}`;
/** A row for each loss, each acceptance by the place of what it accepts, and each piece of work under way. */
const [LOST, ACCEPTED, BEGUN] = ['lost-', 'accepted-', 'begun-'] as const;

const placeOf = ({ year, index }: Position): string => `${year}-${index}`;
const positionOf = (place: string): Position => {
  const [year, index] = place.split('-').map(Number);
  return { year: year ?? 0, index: index ?? 0 };
};

const stored = gap.omit({ accepted: true });
const acceptance = stored.pick({ outbox: true, epoch: true, from: true, to: true, at: true });

/** Rows of an entry that reports a gap or accepts one. */
export function gapRowsOf(zone: string, leaf: Leaf, position: Position): IndexRow[] {
  const partition = partitionOf(zone);
  const at = leaf.t.seq;
  const lost = gapIn(leaf);
  if (lost) return [{ partition, key: LOST + keyOf(position), value: { gap: placeOf(position), ...lost, at } }];
  const accepted = acceptanceIn(leaf);
  return accepted ? [acceptedRow(zone, { ...accepted, at })] : [];
}

export const acceptedRow = (zone: string, { gap, ...rest }: Omit<Gap, 'request'>): IndexRow => ({
  ...{ partition: partitionOf(zone), key: ACCEPTED + keyOf(positionOf(gap)), value: rest },
});

export type Work = 'ended' | { readonly leaf: Leaf; readonly at: Position };

/** Ids of uploads and documents begin with the time, so their rows are in the order in which work began. */
const keyOfWork = (request: string): string =>
  BEGUN + (/^[0-9a-f-]{36}$/.test(request) ? request : encodeURIComponent(request).replaceAll('%', '_'));

/** Notes work that has begun, and forgets work that has ended. */
export async function noteWork(rows: Rows, zone: string, work: ReadonlyMap<string, Work>): Promise<void> {
  const partition = partitionOf(zone);
  for (const [request, step] of work) {
    const key = keyOfWork(request);
    if (step === 'ended') {
      if (await rows.read(partition, key)) await rows.commit(partition, [{ type: 'remove', key }]);
      continue;
    }
    const { p: outbox, ep: epoch, pseq, t } = step.leaf;
    const value = { gap: placeOf(step.at), outbox, epoch, from: pseq, to: pseq, at: t.seq, request };
    if (!(await rows.commit(partition, [{ type: 'put', key, value }]))) throw new Error('the index does not take work');
  }
}

/**
 * Returns gaps of all years, oldest first: open ones up to `AUDIT_GAPS_LISTED_MAX`, and as many of the accepted ones. The rows
 * of accepted gaps and of work that is not overdue stay in the index, so a scan of a fixed length would hide later gaps.
 */
export async function readGaps(rows: Rows, zone: string, now: number): Promise<Gap[]> {
  const most = AUDIT_GAPS_LISTED_MAX;
  const acceptances = new Map<string, z.infer<typeof acceptance>>();
  for await (const { key, value } of scanAll(rows, zone, ACCEPTED))
    acceptances.set(keyOfRow(key), acceptance.parse(value));
  const open: Gap[] = [];
  const accepted: Gap[] = [];
  for (const scan of [scanAll(rows, zone, LOST), scanAll(rows, zone, BEGUN, BEGUN + firstIdAfter(now))]) {
    const until = open.length + most;
    for await (const { value } of scan) {
      const one = stored.parse(value);
      if (one.request !== undefined && !isOverdue(one.at, now)) continue;
      const found = acceptances.get(keyOf(positionOf(one.gap)));
      if (found && isSameGap(found, one)) accepted.push({ ...one, accepted: { at: found.at } });
      else open.push(one);
      if (open.length >= until) break;
    }
  }
  const byTime = (a: Gap, b: Gap) => a.at - b.at;
  return [...open.sort(byTime).slice(0, most), ...accepted.sort(byTime).slice(-most)].sort(byTime);
}

/** Rows of one kind in the order of their keys. No key of the index is another one with more behind it. */
async function* scanAll(rows: Rows, zone: string, kind: string, to = endOf(kind)): AsyncGenerator<Row> {
  const most = AUDIT_GAPS_LISTED_MAX;
  for (let from: string = kind; ; ) {
    const page = await rows.scan(partitionOf(zone), from, to, most);
    yield* page;
    const last = page.at(-1);
    if (!last || page.length < most) return;
    from = `${last.key}!`;
  }
}

/** The first id of a time at which work is not overdue: an id is made before its work begins. */
function firstIdAfter(now: number): string {
  const time = (now - AUDIT_UNENDED_MS).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}`;
}

function keyOfRow(key: string): string {
  const position = readKey(key.slice(ACCEPTED.length));
  return position ? keyOf(position) : key;
}
