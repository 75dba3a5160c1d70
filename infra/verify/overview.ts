// Overview of the entries in verify.html: counts by type, the time they span, and the entries themselves.
import type { VerifiedEntry } from '../../shared/audit/verify/verify-bundle.ts';

/** Entries in the table of verify.html, a kilobyte each: a browser has some hundred megabytes for a page. */
export const SHOWN_ENTRIES_MAX = 100_000;
/** Types of entries that are counted by name: a log has some thirty, and a forged bundle any number. */
export const SHOWN_TYPES_MAX = 100;

export interface Row {
  readonly index: number;
  /** Number of the tenant; entries of the log itself have none. */
  readonly tseq: number | undefined;
  readonly time: number;
  readonly type: string;
  /** Id of the request or of the entry's object. */
  readonly id: string;
  readonly entry: VerifiedEntry;
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Counts all entries and retains the first of them, in the order of the log. */
export class Overview {
  readonly rows: Row[] = [];
  readonly #types = new Map<string, number>();
  #others = 0;
  entries = 0;
  from = Number.POSITIVE_INFINITY;
  to = Number.NEGATIVE_INFINITY;

  add(entry: VerifiedEntry): void {
    const { index, facts } = entry;
    const { time, type, tseq, leaf } = facts;
    this.entries += 1;
    this.from = Math.min(this.from, time);
    this.to = Math.max(this.to, time);
    const known = this.#types.get(type);
    if (known !== undefined || this.#types.size < SHOWN_TYPES_MAX) this.#types.set(type, (known ?? 0) + 1);
    else this.#others += 1;
    if (this.rows.length >= SHOWN_ENTRIES_MAX) return;
    this.rows.push({ index, tseq, time, type, id: textOf(leaf.request) ?? facts.id, entry });
  }

  /** Types by count, and under "others" the sum of types beyond the bound. */
  get types(): readonly (readonly [type: string, count: number])[] {
    const sorted = [...this.#types].sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1));
    return this.#others > 0 ? [...sorted, ['others', this.#others]] : sorted;
  }
}

/** Returns the rows of a type that contain a text: in their id, their leaf or its disclosed values. */
export function searchRows(rows: readonly Row[], text: string, type: string): readonly Row[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === '' && type === '') return rows;
  return rows.filter(
    (row) => (type === '' || row.type === type) && (wanted === '' || contentOf(row).toLowerCase().includes(wanted)),
  );
}

/** Leaf and disclosed values as text. */
export const contentOf = ({ index, entry: { facts, shown } }: Row): string =>
  JSON.stringify({ index, leaf: facts.leaf, ...(Object.keys(shown).length > 0 && { disclosed: shown }) }, undefined, 2);
