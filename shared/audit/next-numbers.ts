// Consecutive numbers of several independent counters: the next expected one, and those that the log reports
// lost.

export class NextNumbers {
  readonly #next = new Map<string, number>();

  /** Takes a number of `name`. Returns the expected one: `first` when the counter is new. */
  take(name: string, number: number, first: number): number {
    const expected = this.#next.get(name) ?? first;
    this.#next.set(name, number + 1);
    return expected;
  }

  /** Skips lost numbers up to `to`. */
  pass(name: string, to: number): void {
    this.#next.set(name, to + 1);
  }
}

/** Content of a `producer.gap`. */
export interface Loss {
  readonly outbox: unknown;
  readonly epoch: string;
  /** `undefined` for an interrupted epoch, whose losses are unknown. */
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
