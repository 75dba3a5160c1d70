// Finds entries of a tenant. The index gives positions; a hit is the entry of the log at a position, with its
// receipt. A wrong row yields no hit. A missing row hides an entry until the index is rebuilt.

import { toBase64 } from '../../../shared/audit/base64.ts';
import { readDisclosure } from '../../../shared/audit/commitment.ts';
import { type Leaf, readLeaf } from '../../../shared/audit/leaf.ts';
import type { FoundEntries, SearchHit } from '../../../shared/audit/search.ts';
import { TILE_WIDTH } from '../../../shared/audit/tile.ts';
import { hashLeaf } from '../../../shared/audit/tree.ts';
import { limits } from '../../../shared/limits.ts';
import { endOf } from '../../store/rows.ts';
import { erasureName, readErasure } from '../erase/erase-state.ts';
import { LogFiles } from '../log/log-files.ts';
import { Receipts } from '../log/make-receipt.ts';
import { publishedSize } from '../log/publish-checkpoint.ts';
import { type Hidden, SidecarReader } from '../sidecar/sidecar.ts';
import { actsOf } from '../sidecar/sidecar-names.ts';
import { readPointer, type SubjectPlace } from '../sidecar/sidecar-subject.ts';
import { type IndexDesk, indexedUpTo } from './search-follow.ts';
import { dayOf, daysBetween, type Position, partitionOf, readKey, rowsOf } from './search-rows.ts';

/** All that is given must hold. */
export interface SearchAsked {
  readonly tenant: string;
  readonly request?: string | undefined;
  readonly model?: string | undefined;
  readonly type?: string | undefined;
  /** As `20261122`. */
  readonly day?: string | undefined;
  /** The commitments of one caller, any of which will do. */
  readonly subjects?: readonly string[] | undefined;
  /** Places in the log of `year`, in place of what the index knows. */
  readonly year?: number | undefined;
  readonly indexes?: readonly number[] | undefined;
  /** Includes the hidden values of entries. */
  readonly disclose?: boolean | undefined;
  /** `next` of an earlier answer. */
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

interface Candidate extends Position {
  readonly partition: string;
  readonly key: string;
}

/** Hits at places that are known already; a place of another tenant has none. */
async function readPlaces(desk: IndexDesk, asked: SearchAsked, year: number): Promise<SearchHit[]> {
  const reader = new EntryReader(desk);
  const hits: SearchHit[] = [];
  for (const index of asked.indexes ?? []) {
    const hit = await reader.read({ year, index }, asked);
    if (hit && hit !== 'wrong') hits.push(hit);
  }
  return hits;
}

export async function searchLog(desk: IndexDesk, asked: SearchAsked): Promise<FoundEntries> {
  if (asked.year !== undefined) return { zone: desk.zone, hits: await readPlaces(desk, asked, asked.year) };
  const most = Math.min(asked.limit ?? limits.auditSearchHits.value, limits.auditSearchHits.value);
  const reader = new EntryReader(desk);
  const hits: SearchHit[] = [];
  let [after, more] = [asked.after, true];
  // Filters that the index lacks may reject most of its candidates.
  for (let looked = 0; more && hits.length < most && looked < limits.auditSearchLooked.value; ) {
    const candidates = await findCandidates(desk, { ...asked, after }, most + 1);
    for (const candidate of candidates.slice(0, most)) {
      if (hits.length === most) break;
      [after, looked] = [candidate.key, looked + 1];
      const hit = await reader.read(candidate, asked);
      if (hit === 'wrong') await desk.rows.commit(candidate.partition, [{ type: 'remove', key: candidate.key }]);
      else if (hit) hits.push(hit);
    }
    more = candidates.length > 0 && after !== candidates.at(-1)?.key;
  }
  const next = more ? after : undefined;
  const indexed = await indexedUpTo(desk);
  return { zone: desk.zone, hits, ...(next !== undefined && { next }), ...(indexed && { indexed }) };
}

/** Returns the candidates that the most selective filter has in the index, in key order. */
async function findCandidates(desk: IndexDesk, asked: SearchAsked, limit: number): Promise<Candidate[]> {
  const { rows, zone } = desk;
  const { tenant, request, model, day, subjects, after } = asked;
  const partitions =
    request !== undefined
      ? [partitionOf('request', zone, tenant, request)]
      : subjects !== undefined
        ? (await sidsOf(desk, tenant, subjects)).map((sid) => partitionOf('subject', zone, tenant, sid))
        : model !== undefined
          ? [partitionOf('model', zone, tenant, model)]
          : [partitionOf('day', zone, tenant, '')];
  const byDay = request === undefined && subjects === undefined && model === undefined;
  const [from, to] = byDay ? daysBetween(day) : ['', endOf('')];
  // A key is not followed by anything sooner than by itself and one character more.
  const start = after === undefined || after < from ? from : `${after} `;
  const found = await Promise.all(partitions.map((partition) => rows.scan(partition, start, to, limit)));
  const candidates = found.flatMap((some, at) =>
    some.flatMap(({ key }): Candidate[] => {
      const place = readKey(key);
      return place ? [{ ...place, key, partition: partitions[at] as string }] : [];
    }),
  );
  return candidates.sort((a, b) => (a.key < b.key ? -1 : 1)).slice(0, limit);
}

/** The numbers of a subject: its own, that of its acts, and those that wait to be erased. */
async function sidsOf({ keys, zone }: IndexDesk, tenant: string, subjects: readonly string[]): Promise<string[]> {
  const place = await keys.subjects(tenant);
  const found = new Set<string>();
  for (const subject of place ? subjects : []) {
    for (const name of [subject, actsOf(subject)]) {
      const { sid } = await readPointer(place as SubjectPlace, name);
      if (sid !== undefined) found.add(sid);
    }
    const name = erasureName(zone, tenant, await (place as SubjectPlace).key.tag(subject));
    const waiting = await readErasure(place as SubjectPlace, name);
    for (const part of waiting?.state.parts ?? []) found.add(part.sid);
  }
  return [...found];
}

/** Entries of the logs of a zone, one bundle of which is held. What proves them is read once for all of an answer. */
class EntryReader {
  readonly #desk: IndexDesk;
  readonly #receipts: Receipts;
  readonly #sidecars = new Map<number, SidecarReader>();
  readonly #sizes = new Map<number, number>();
  #bundle: { readonly year: number; readonly number: number; readonly entries: readonly Uint8Array[] } | undefined;

  constructor(desk: IndexDesk) {
    this.#desk = desk;
    this.#receipts = new Receipts(desk.store, desk.zone);
  }

  /** `wrong`: the log says something else there. `undefined`: it is not all that was asked for, or that cannot be told. */
  async read(candidate: Position & Partial<Candidate>, asked: SearchAsked): Promise<SearchHit | 'wrong' | undefined> {
    const { zone } = this.#desk;
    const { year, index } = candidate;
    const entry = await this.#entry(year, index);
    const leaf = entry && readLeaf(entry);
    if (!entry || !leaf || !isRight(zone, candidate, leaf, asked)) return 'wrong';
    if (!fits(leaf, asked)) return undefined;
    const { subjects, disclose } = asked;
    const hidden = subjects || disclose ? await this.#hidden(year, index, entry) : undefined;
    const disclosure = subjects && subjectIn(hidden, subjects);
    if (subjects && disclosure === undefined) return undefined;
    const receipt = await this.#receipts.of(year, index);
    if (receipt === undefined) return undefined;
    return {
      ...{ year, index, leafHash: toBase64(hashLeaf(entry)), entry: new TextDecoder().decode(entry), receipt },
      ...(disclose && typeof hidden === 'object' && { disclosed: Object.values(hidden) }),
      ...(disclose && hidden === 'erased' && { erased: true as const }),
      ...(disclosure !== undefined && { disclosure }),
    };
  }

  async #entry(year: number, index: number): Promise<Uint8Array | undefined> {
    const { store, zone } = this.#desk;
    const number = Math.floor(index / TILE_WIDTH);
    const size = this.#sizes.get(year) ?? (await publishedSize({ store, zone, year }));
    this.#sizes.set(year, size);
    if (index >= size) return undefined;
    if (this.#bundle?.year !== year || this.#bundle.number !== number) {
      this.#bundle = { year, number, entries: await new LogFiles(store, zone, year, size).entries(number) };
    }
    return this.#bundle.entries[index - number * TILE_WIDTH];
  }

  async #hidden(year: number, index: number, entry: Uint8Array): Promise<Hidden> {
    const { store, zone, keys } = this.#desk;
    // A cached key outlives an erasure in another process.
    const reader = this.#sidecars.get(year) ?? new SidecarReader({ store, zone, year }, keys.fresh());
    this.#sidecars.set(year, reader);
    const [hidden] = await reader.read(index, [entry]);
    return hidden;
  }
}

/** Returns the disclosure that names one of `subjects` as the subject of an entry. */
function subjectIn(hidden: Hidden, subjects: readonly string[]): string | undefined {
  const text = typeof hidden === 'object' ? hidden.subject : undefined;
  const value = text === undefined ? undefined : readDisclosure(text)?.value;
  return subjects.some((subject) => subject === value) ? text : undefined;
}

/** Whether the row says of the entry what the entry says; of whom it is, the entry alone does not. */
function isRight(
  zone: string,
  { partition, key, ...at }: Position & Partial<Candidate>,
  leaf: Leaf,
  { tenant }: SearchAsked,
): boolean {
  if (partition === undefined) return leaf.tn === tenant;
  if (partition.startsWith('subject!')) return leaf.tn === tenant;
  return rowsOf(zone, leaf, at, undefined).some((row) => row.partition === partition && row.key === key);
}

function fits(leaf: Leaf, { tenant, request, model, day, type }: SearchAsked): boolean {
  if (leaf.tn !== tenant) return false;
  if (type !== undefined && leaf.type !== type) return false;
  if (request !== undefined && leaf.req !== request) return false;
  if (model !== undefined && leaf.model !== model) return false;
  return day === undefined || dayOf(leaf) === day;
}
