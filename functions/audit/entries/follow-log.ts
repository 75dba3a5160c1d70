// Builds the index by following the logs of a zone, from its first year to its last entry. All rows of a bundle are written
// before the cursor goes on, and writing one twice changes nothing: whatever breaks off is done again.
import { z } from 'zod';
import { workIn } from '../../../shared/audit/gaps.ts';
import { readLeaf } from '../../../shared/audit/leaf.ts';
import { INDEX_BUNDLES_PER_ROUND_MAX } from '../../../shared/audit/limits.ts';
import { TILE_WIDTH } from '../../../shared/audit/tile.ts';
import { TRANSACTION_ROWS_MAX } from '../../limits.ts';
import type { Change, Rows } from '../../store/rows.ts';
import { SEARCH_YEARS_MAX } from '../limits.ts';
import { newestState } from '../log/acknowledge.ts';
import { yearAfter } from '../log/find-years.ts';
import { LogFiles } from '../log/log-files.ts';
import type { LogStore } from '../log/log-store.ts';
import { publishedSize } from '../log/publish-checkpoint.ts';
import { readBox } from '../sidecar/hide.ts';
import { SidecarReader } from '../sidecar/sidecar.ts';
import type { SidecarKeys } from '../sidecar/sidecar-keys.ts';
import { subjectName } from '../sidecar/sidecar-names.ts';
import { type IndexRow, type Position, rowsOf } from './entry-rows.ts';
import { gapRowsOf, noteWork, type Work } from './gap-rows.ts';

/** Concurrent transactions of the index; each is of another partition. */
const INDEX_TRANSACTIONS_MAX = 16;

export interface IndexContext {
  readonly zone: string;
  readonly store: LogStore;
  readonly rows: Rows;
  readonly keys: SidecarKeys;
}

const cursorRow = z.object({ year: z.number().int(), index: z.number().int() });
export const cursorPartition = (zone: string): string => `cursor!${zone}`;
/** The name changes when the index gets rows of a new kind: the index is then built again while it answers. */
export const CURSOR = 'cursor-2';

/** Up to where the index knows the logs; `undefined` where none has begun. */
export async function indexedUpTo({ rows, zone }: Pick<IndexContext, 'rows' | 'zone'>): Promise<Position | undefined> {
  const stored = await rows.read(cursorPartition(zone), CURSOR);
  return stored && cursorRow.parse(stored.value);
}

/** Indexes up to `most` bundles. Returns the number of entries read. */
export async function followLog(context: IndexContext, most: number = INDEX_BUNDLES_PER_ROUND_MAX): Promise<number> {
  const { rows, store, zone } = context;
  let looked = 0;
  for (let bundles = 0; bundles < most; bundles += 1) {
    const stored = await rows.read(cursorPartition(zone), CURSOR);
    const at = stored ? cursorRow.parse(stored.value) : await firstLog(store, zone);
    if (!at) return looked;
    const size = await publishedSize({ store, zone, year: at.year });
    const next = at.index < size ? await addBundle(context, at, size) : await nextLog(store, zone, at);
    if (!next) return looked;
    const value = { ...next };
    const change = stored
      ? ({ type: 'replace', key: CURSOR, value, version: stored.version } as const)
      : ({ type: 'insert', key: CURSOR, value } as const);
    // Another process indexes too, or restarts the index.
    if (!(await rows.commit(cursorPartition(zone), [change]))) return looked;
    looked += next.year === at.year ? next.index - at.index : 0;
  }
  return looked;
}

async function firstLog(store: LogStore, zone: string): Promise<Position | undefined> {
  const state = await newestState(store, zone);
  if (!state) return undefined;
  const before = state.year - SEARCH_YEARS_MAX - 1;
  return { year: (await yearAfter(store, zone, before, state.year)) ?? state.year, index: 0 };
}

/** The log of a later year: the one before has been published to its end. */
async function nextLog(store: LogStore, zone: string, { year }: Position): Promise<Position | undefined> {
  const newest = (await newestState(store, zone))?.year ?? year;
  const next = await yearAfter(store, zone, year, newest);
  return next === undefined ? undefined : { year: next, index: 0 };
}

/** The entries from `at` to the end of their bundle. */
async function addBundle(context: IndexContext, { year, index }: Position, size: number): Promise<Position> {
  const { store, zone, keys } = context;
  const bundle = Math.floor(index / TILE_WIDTH);
  const first = index - bundle * TILE_WIDTH;
  const entries = (await new LogFiles(store, zone, year, size).entries(bundle)).slice(first);
  const boxes = await new SidecarReader({ store, zone, year }, keys).boxes(index, index + entries.length);
  const found: IndexRow[] = [];
  const work = new Map<string, Work>();
  const lives = new Map<string, Promise<boolean>>();
  for (const [offset, entry] of entries.entries()) {
    const leaf = readLeaf(entry);
    if (!leaf) continue;
    const box = boxes[offset];
    const sid = leaf.sd && box !== undefined ? readBox(box)?.sid : undefined;
    // An erased subject stays out of a rebuilt index.
    const alive = sid ? await isAlive(context, leaf.tn, sid, lives) : false;
    const at = { year, index: index + offset };
    found.push(...rowsOf(zone, leaf, at, alive ? sid : undefined), ...gapRowsOf(zone, leaf, at));
    const step = workIn(leaf);
    if (step) work.set(step.request, step.ends ? 'ended' : { leaf, at });
  }
  await writeRows(context.rows, found);
  await noteWork(context.rows, zone, work);
  return { year, index: index + entries.length };
}

function isAlive(
  { store, zone }: IndexContext,
  tenant: string | undefined,
  sid: string,
  known: Map<string, Promise<boolean>>,
) {
  const name = subjectName(zone, tenant, sid);
  const stored = known.get(name) ?? store.read('sidecar', name).then((file) => file !== undefined);
  known.set(name, stored);
  return stored;
}

/** Writes rows, the last of each key: a transaction must not repeat a key. */
async function writeRows(rows: Rows, found: readonly IndexRow[]): Promise<void> {
  const partitions = new Map<string, Map<string, Change>>();
  for (const { partition, key, value = {} } of found) {
    const changes = partitions.get(partition) ?? new Map<string, Change>();
    partitions.set(partition, changes.set(key, { type: 'put', key, value }));
  }
  const transactions = [...partitions].flatMap(([partition, byKey]) => {
    const changes = [...byKey.values()];
    return Array.from({ length: Math.ceil(changes.length / TRANSACTION_ROWS_MAX) }, (_, at) => ({
      partition,
      changes: changes.slice(at * TRANSACTION_ROWS_MAX, (at + 1) * TRANSACTION_ROWS_MAX),
    }));
  });
  const next = transactions[Symbol.iterator]();
  const work = async () => {
    for (const { partition, changes } of next) {
      if (!(await rows.commit(partition, changes))) throw new Error('the index does not take what is put into it');
    }
  };
  await Promise.all(Array.from({ length: INDEX_TRANSACTIONS_MAX }, work));
}
