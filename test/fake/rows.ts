import type { Change, Row, Rows, Value } from '../../functions/store/rows.ts';

/** A stored row, frozen, so that a mutation by its reader throws. */
interface Stored {
  readonly value: Value;
  readonly version: string;
}

type Watch = (partition: string, key: string, before: Value | undefined, after: Value | undefined) => void;

/** Rows of several partitions, by the rules of `functions/store/rows.ts`. */
export class Table {
  readonly partitions = new Map<string, Map<string, Stored>>();
  /** Sorted keys of each partition; absent before its first scan. */
  readonly #sorted = new Map<string, string[]>();
  #version = 0;
  readonly #watch: Watch;

  constructor(watch: Watch) {
    this.#watch = watch;
  }

  of(partition: string): Map<string, Stored> {
    const found = this.partitions.get(partition) ?? new Map<string, Stored>();
    this.partitions.set(partition, found);
    return found;
  }

  commit(partition: string, changes: readonly Change[]): boolean {
    const rows = this.of(partition);
    if (changes.length > 100) throw new Error('a transaction takes 100 changes');
    if (new Set(changes.map(({ key }) => key)).size < changes.length) throw new Error('a row twice in a transaction');
    for (const change of changes) {
      const there = rows.get(change.key);
      if (change.type === 'insert' && there) return false;
      if (change.type === 'remove' && !there) return false;
      if (change.type === 'replace' && there?.version !== change.version) return false;
    }
    for (const change of changes) {
      const before = rows.get(change.key);
      this.#sort(partition, change, before !== undefined);
      if (change.type === 'remove') rows.delete(change.key);
      else rows.set(change.key, { value: copyOf(change.value), version: String(++this.#version) });
      this.#watch(partition, change.key, before?.value, rows.get(change.key)?.value);
    }
    return true;
  }

  scan(partition: string, from: string, to: string, limit: number): Row[] {
    const rows = this.of(partition);
    let keys = this.#sorted.get(partition);
    // Tests put rows there by hand.
    if (keys?.length !== rows.size) {
      keys = [...rows.keys()].sort();
      this.#sorted.set(partition, keys);
    }
    const found: Row[] = [];
    for (let at = placeIn(keys, from); at < keys.length && found.length < limit; at += 1) {
      const key = keys[at] as string;
      if (key >= to) break;
      found.push({ key, ...(rows.get(key) as Stored) });
    }
    return found;
  }

  #sort(partition: string, { type, key }: Change, known: boolean): void {
    const keys = this.#sorted.get(partition);
    if (!keys) return;
    if (type === 'remove') keys.splice(placeIn(keys, key), 1);
    else if (!known) keys.splice(placeIn(keys, key), 0, key);
  }

  read(partition: string, key: string): Row | undefined {
    const row = this.of(partition).get(key);
    return row && { key, ...row };
  }
}

/** Returns the index of a key in a sorted list, or its insertion point. */
function placeIn(keys: readonly string[], key: string): number {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((keys[middle] as string) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

const copyOf = (value: Value): Value => freeze(JSON.parse(JSON.stringify(value)) as Value);

function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const part of Object.values(value)) freeze(part);
  return Object.freeze(value);
}

/** Rows in memory. */
export class MemoryRows implements Rows {
  readonly #table = new Table(() => {});

  async ensure(): Promise<void> {}

  async read(partition: string, key: string): Promise<Row | undefined> {
    return this.#table.read(partition, key);
  }

  async scan(partition: string, from: string, to: string, limit: number): Promise<Row[]> {
    return this.#table.scan(partition, from, to, limit);
  }

  async commit(partition: string, changes: readonly Change[]): Promise<boolean> {
    return this.#table.commit(partition, changes);
  }
}
