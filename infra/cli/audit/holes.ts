// Holes of a log: missing numbers of an outbox or a tenant, and work of the functions that never ended.
import { acceptanceIn, gapIn, isOverdue, isSameGap, type Missing, workIn } from '../../../shared/audit/gaps.ts';
import type { Leaf } from '../../../shared/audit/leaf.ts';
import { readLeaf } from '../../../shared/audit/leaf.ts';
import { NextNumbers, readLoss } from '../../../shared/audit/next-numbers.ts';

interface Hole {
  readonly index: number;
  readonly text: string;
  /** Absent for a hole that the log itself does not report: no operator can accept it. */
  readonly gap?: Missing;
}

export class LogHoles {
  readonly #year: number | undefined;
  readonly #holes: Hole[] = [];
  readonly #begun = new Map<string, Hole & { readonly at: number }>();
  /** Index of the accepting entry → accepted gap. */
  readonly #accepted = new Map<number, Missing & { readonly by: string }>();
  readonly #next = new NextNumbers();
  #first: number | undefined;

  constructor(year: number | undefined) {
    this.#year = year;
  }

  see(entry: Uint8Array, index: number): void {
    const leaf = readLeaf(entry);
    if (!leaf) return;
    // Numbering starts at 1 in the first log of a region; later logs continue it.
    if (index === 0 && leaf.type === 'shard.open' && !('previous' in leaf)) this.#first = 1;
    this.#count(`outbox ${leaf.p} ${leaf.ep}`, leaf.pseq, index);
    if (leaf.tn !== undefined && leaf.tseq !== undefined) this.#count(`tenant ${leaf.tn}`, leaf.tseq, index);
    this.#acceptance(leaf, String(index))?.();
    const work = workIn(leaf);
    if (work?.ends) this.#begun.delete(work.request);
    else if (work) {
      const gap = { outbox: leaf.p, epoch: leaf.ep, from: leaf.pseq, to: leaf.pseq };
      this.#begun.set(work.request, { index, at: leaf.t.seq, gap, text: `${work.request} has no end` });
    }
    const loss = readLoss(leaf);
    if (!loss) return;
    const gap = gapIn(leaf);
    this.#holes.push({ index, text: loss.text, ...(gap && { gap }) });
    // Later events of an interrupted epoch continue from its last number.
    if (loss.to !== undefined) this.#next.pass(`outbox ${String(loss.outbox)} ${loss.epoch}`, loss.to);
  }

  /**
   * Returns the effect of a later log's entry on a hole; the caller applies it once that log is verified.
   * `by` names the entry.
   */
  decisionIn(entry: Uint8Array, by: string): (() => void) | undefined {
    const leaf = readLeaf(entry);
    const work = leaf && workIn(leaf);
    if (work?.ends && this.#begun.has(work.request)) return () => void this.#begun.delete(work.request);
    return leaf && this.#acceptance(leaf, by);
  }

  #acceptance(leaf: Leaf, by: string): (() => void) | undefined {
    const accepted = acceptanceIn(leaf);
    const [year, place] = accepted?.gap.split('-').map(Number) ?? [];
    if (!accepted || place === undefined || year !== this.#year) return undefined;
    return () => void this.#accepted.set(place, { ...accepted, by });
  }

  /** Returns open holes, and those that an operator has accepted. */
  found(now: number): { readonly open: string[]; readonly accepted: string[] } {
    const overdue = [...this.#begun.values()].filter(({ at }) => isOverdue(at, now));
    const all = [...this.#holes, ...overdue].sort((a, b) => a.index - b.index);
    const open: string[] = [];
    const accepted: string[] = [];
    for (const { index, text, gap } of all) {
      const found = this.#accepted.get(index);
      if (gap && found && isSameGap(found, gap))
        accepted.push(`entry ${index}: ${text}; accepted in entry ${found.by}`);
      else open.push(`entry ${index}: ${text}`);
    }
    return { open, accepted };
  }

  #count(name: string, number: number, index: number): void {
    const expected = this.#next.take(name, number, this.#first ?? number);
    if (expected !== number) this.#holes.push({ index, text: `${number} of ${name}, expected ${expected}` });
  }
}
