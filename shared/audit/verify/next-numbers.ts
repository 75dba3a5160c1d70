// Numbers that come one after the other, of each that is counted by itself: which comes next, and which of them the log
// says are lost.

export class NextNumbers {
  readonly #next = new Map<string, number>();

  /** Takes a number of `name`. Returns the one that was expected: `first` where none of them was seen before. */
  take(name: string, number: number, first: number): number {
    const expected = this.#next.get(name) ?? first;
    this.#next.set(name, number + 1);
    return expected;
  }

  /** Those up to `to` do not come any more. */
  pass(name: string, to: number): void {
    this.#next.set(name, to + 1);
  }
}

/** Content of a `producer.gap`. */
export interface Loss {
  readonly outbox: unknown;
  readonly epoch: string;
  /** Returns `undefined` for an interrupted life, whose losses are unknown. */
  readonly to: number | undefined;
  readonly text: string;
}

export function readLoss(leaf: Readonly<Record<string, unknown>>): Loss | undefined {
  if (leaf.type !== 'producer.gap') return undefined;
  const { outbox, epoch, from, to } = leaf;
  const upTo = Number.isSafeInteger(to) ? Number(to) : undefined;
  const text =
    upTo === undefined
      ? `${String(outbox)} was broken off: events from ${String(from)} on may have been lost before they reached the log`
      : `events ${String(from)} to ${upTo} of ${String(outbox)} were lost before they reached the log`;
  return { outbox, epoch: String(epoch), to: upTo, text };
}
