// Gaps of the logs of a zone, as rows of the index. The log's own entries are the truth; the rows say where they are.
import { z } from 'zod';
import { acceptanceIn, type Gap, gap, gapIn, isOverdue, isSameGap } from '../../../shared/audit/gaps.ts';
import type { Leaf } from '../../../shared/audit/leaf.ts';
import { limits } from '../../../shared/limits.ts';
import { endOf, type Rows } from '../../store/rows.ts';
import { type IndexRow, keyOf, type Position, readKey } from '../search/search-rows.ts';

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

/** Rows of an entry that tells of a gap or accepts one. */
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

/** Gaps of all years, oldest first. */
export async function readGaps(rows: Rows, zone: string, now: number): Promise<Gap[]> {
  const most = limits.auditGapsListed.value;
  const scan = (kind: string) => rows.scan(partitionOf(zone), kind, endOf(kind), most);
  const [lost, begun, accepted] = await Promise.all([scan(LOST), scan(BEGUN), scan(ACCEPTED)]);
  const acceptances = new Map(accepted.map(({ key, value }) => [keyOfRow(key), acceptance.parse(value)]));
  const gaps = z.array(stored).parse([...lost, ...begun].map(({ value }) => value));
  return gaps
    .filter(({ request, at }) => request === undefined || isOverdue(at, now))
    .map((one): Gap => {
      const found = acceptances.get(keyOf(positionOf(one.gap)));
      return found && isSameGap(found, one) ? { ...one, accepted: { at: found.at } } : one;
    })
    .sort((a, b) => a.at - b.at);
}

function keyOfRow(key: string): string {
  const position = readKey(key.slice(ACCEPTED.length));
  return position ? keyOf(position) : key;
}
