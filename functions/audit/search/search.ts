// Finds entries of a tenant. The index gives positions; a hit is the entry of the log at a position, and a row that names
// another entry yields no hit. A missing row hides an entry until the index is rebuilt.

import { readDisclosure } from '../../../shared/audit/commitment.ts';
import { type Leaf, readLeaf } from '../../../shared/audit/leaf.ts';
import { SEARCH_HITS_MAX } from '../../../shared/audit/privacy.ts';
import type { FoundEntries, SearchHit } from '../../../shared/audit/search.ts';
import { TILE_WIDTH } from '../../../shared/audit/tile.ts';
import { endOf } from '../../store/rows.ts';
import { dayOf, daysBetween, type Position, partitionOf, readKey } from '../entries/entry-rows.ts';
import { type IndexContext, indexedUpTo } from '../entries/follow-log.ts';
import { erasureName, readErasure } from '../erase/erase-state.ts';
import { LogFiles } from '../log/log-files.ts';
import { publishedSize } from '../log/publish-checkpoint.ts';
import { type Hidden, SidecarReader } from '../sidecar/sidecar.ts';
import { actsOf } from '../sidecar/sidecar-names.ts';
import { readPointer, type SubjectPlace } from '../sidecar/sidecar-subject.ts';

/** Entries that one search reads for its page: four pages, so that a rare match still takes few answers. */
export const SEARCH_ENTRIES_READ_MAX = 200;

/** Filters, all of which must hold. */
export interface SearchQuery {
  readonly tenant: string;
  readonly request?: string | undefined;
  readonly model?: string | undefined;
  readonly type?: string | undefined;
  /** Day as `20261122`. */
  readonly day?: string | undefined;
  /** Commitments of one subject, any of which matches. */
  readonly subjects?: readonly string[] | undefined;
  /** With `indexes`, reads these positions of that year's log instead of the index. */
  readonly year?: number | undefined;
  readonly indexes?: readonly number[] | undefined;
  /** Includes the hidden values of entries. */
  readonly disclose?: boolean | undefined;
  /** `next` of an earlier answer. */
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

type Candidate = Position & { readonly key: string };

export async function searchLog(context: IndexContext, query: SearchQuery): Promise<FoundEntries> {
  const { zone } = context;
  const { year, indexes = [] } = query;
  const reader = new EntryReader(context, query);
  if (year !== undefined) {
    const hits: SearchHit[] = [];
    for (const index of indexes) hits.push(...(await reader.read({ year, index })));
    return { zone, hits };
  }
  const most = Math.min(query.limit ?? SEARCH_HITS_MAX, SEARCH_HITS_MAX);
  const hits: SearchHit[] = [];
  let [after, more] = [query.after, true];
  // Filters that the index lacks may reject most of its candidates.
  for (let looked = 0; more && hits.length < most && looked < SEARCH_ENTRIES_READ_MAX; ) {
    const candidates = await findCandidates(context, { ...query, after }, most + 1);
    for (const candidate of candidates.slice(0, most)) {
      if (hits.length === most) break;
      [after, looked] = [candidate.key, looked + 1];
      hits.push(...(await reader.read(candidate)));
    }
    more = candidates.length > 0 && after !== candidates.at(-1)?.key;
  }
  const next = more ? after : undefined;
  const indexed = await indexedUpTo(context);
  return { zone, hits, ...(next !== undefined && { next }), ...(indexed && { indexed }) };
}

/** Returns the candidates that the most selective filter has in the index, in key order. */
async function findCandidates(context: IndexContext, query: SearchQuery, limit: number): Promise<Candidate[]> {
  const { rows, zone } = context;
  const { tenant, request, model, day, subjects, after } = query;
  const partitions =
    request !== undefined
      ? [partitionOf('request', zone, tenant, request)]
      : subjects !== undefined
        ? (await sidsOf(context, tenant, subjects)).map((sid) => partitionOf('subject', zone, tenant, sid))
        : model !== undefined
          ? [partitionOf('model', zone, tenant, model)]
          : [partitionOf('day', zone, tenant, '')];
  const byDay = request === undefined && subjects === undefined && model === undefined;
  const [from, to] = byDay ? daysBetween(day) : ['', endOf('')];
  // The first key after `after`.
  const start = after === undefined || after < from ? from : `${after} `;
  const found = await Promise.all(partitions.map((partition) => rows.scan(partition, start, to, limit)));
  const candidates = found.flat().flatMap(({ key }): Candidate[] => {
    const position = readKey(key);
    return position ? [{ ...position, key }] : [];
  });
  return candidates.sort((a, b) => (a.key < b.key ? -1 : 1)).slice(0, limit);
}

/** Returns the numbers of a subject: its own, that of its acts, and those whose erasure is deferred. */
async function sidsOf({ keys, zone }: IndexContext, tenant: string, subjects: readonly string[]): Promise<string[]> {
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

/** Reads entries that match a query; one bundle of entries is cached. */
class EntryReader {
  readonly #context: IndexContext;
  readonly #query: SearchQuery;
  readonly #sidecars = new Map<number, SidecarReader>();
  readonly #sizes = new Map<number, number>();
  #bundle: { readonly year: number; readonly number: number; readonly entries: readonly Uint8Array[] } | undefined;

  constructor(context: IndexContext, query: SearchQuery) {
    this.#context = context;
    this.#query = query;
  }

  /** Returns the entry there, or nothing when it does not match. */
  async read({ year, index }: Position): Promise<SearchHit[]> {
    const entry = await this.#entry(year, index);
    const leaf = entry && readLeaf(entry);
    if (!leaf || !matches(leaf, this.#query)) return [];
    const { subjects, disclose } = this.#query;
    const hidden = subjects || disclose ? await this.#hidden(year, index, entry) : undefined;
    if (subjects && !isAbout(hidden, subjects)) return [];
    return [
      {
        ...{ year, index, entry: new TextDecoder().decode(entry) },
        ...(disclose && typeof hidden === 'object' && { disclosed: Object.values(hidden) }),
        ...(disclose && hidden === 'erased' && { erased: true as const }),
      },
    ];
  }

  async #entry(year: number, index: number): Promise<Uint8Array | undefined> {
    const { store, zone } = this.#context;
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
    const { store, zone, keys } = this.#context;
    // A cached key outlives an erasure in another process.
    const reader = this.#sidecars.get(year) ?? new SidecarReader({ store, zone, year }, keys.fresh());
    this.#sidecars.set(year, reader);
    const [hidden] = await reader.read(index, [entry]);
    return hidden;
  }
}

/** Reports whether the hidden values of an entry name one of `subjects` as its subject. */
function isAbout(hidden: Hidden, subjects: readonly string[]): boolean {
  const text = typeof hidden === 'object' ? hidden.subject : undefined;
  const value = text === undefined ? undefined : readDisclosure(text)?.value;
  return subjects.some((subject) => subject === value);
}

function matches(leaf: Leaf, { tenant, request, model, day, type }: SearchQuery): boolean {
  if (leaf.tn !== tenant) return false;
  if (type !== undefined && leaf.type !== type) return false;
  if (request !== undefined && leaf.req !== request) return false;
  if (model !== undefined && leaf.model !== model) return false;
  return day === undefined || dayOf(leaf) === day;
}
