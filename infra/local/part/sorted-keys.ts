// A sorted index beside a LokiJS collection. LokiJS answers a query by a walk through the collection, and
// rebuilds its own indexes with each removal: the cost of one request grows with all rows that are stored.

export interface Stored {
  readonly $loki?: number;
}

/** The members of a LokiJS collection that an index uses. */
export interface Collection<Row extends Stored> {
  readonly name: string;
  readonly data: readonly Row[];
  binaryIndices: Readonly<Record<string, unknown>>;
  chain(): Resultset<Row>;
  find(query: Query): Row[];
  findAndRemove(query: Query): void;
  get(id: number, withPosition: true): readonly [Row, number] | null;
  remove(row: Row): void;
  on(event: string, listener: (row: Row) => void): void;
}

interface Resultset<Row> {
  filteredrows: number[];
  filterInitialized: boolean;
  find(query: Query, firstOnly?: boolean): Resultset<Row>;
}

type Query = Readonly<Record<string, unknown>>;

/** Separates the fields of a key; lower than any character of a name. */
export const END = '\0';
/** Digits of a row's number in its key. */
const NUMBER_DIGITS = 12;

export class KeyIndex<Row extends Stored> {
  readonly #keyOf: (row: Row) => string | undefined;
  readonly #rows = new Map<string, Row>();
  /** The key of each row by its number: a row may have another key before it is updated. */
  readonly #known = new Map<number, string>();
  #keys: string[] = [];
  /** Rows that queries have read so far. */
  examined = 0;

  /** Indexes the rows for which `keyOf` returns a key. Rows may share one. */
  constructor(collection: Collection<Row>, keyOf: (row: Row) => string | undefined) {
    this.#keyOf = keyOf;
    for (const row of collection.data) this.#note(row);
    this.#keys = [...this.#rows.keys()].sort();
    const put = (row: Row) => {
      this.#drop(row);
      const key = this.#note(row);
      if (key !== undefined) this.#keys.splice(this.#placeOf(key), 0, key);
    };
    collection.on('insert', put);
    collection.on('update', put);
    collection.on('delete', (row) => this.#drop(row));
  }

  /** Yields rows whose keys begin with `prefix`, by rising key, those from `from` on and before `to`. */
  *range(prefix: string, from = prefix, to?: string): Generator<Row> {
    for (let at = this.#placeOf(from > prefix ? from : prefix); at < this.#keys.length; at += 1) {
      const key = this.#keys[at] as string;
      if (!key.startsWith(prefix) || (to !== undefined && key >= to)) return;
      this.examined += 1;
      yield this.#rows.get(key) as Row;
    }
  }

  #note(row: Row): string | undefined {
    const { $loki: number = 0 } = row;
    const begin = this.#keyOf(row);
    if (begin === undefined) return undefined;
    const key = `${begin}${END}${String(number).padStart(NUMBER_DIGITS, '0')}`;
    this.#rows.set(key, row);
    this.#known.set(number, key);
    return key;
  }

  #drop({ $loki: number = 0 }: Row): void {
    const key = this.#known.get(number);
    if (key === undefined) return;
    this.#keys.splice(this.#placeOf(key), 1);
    this.#rows.delete(key);
    this.#known.delete(number);
  }

  /** The place of a key among the sorted ones, or where it would be. */
  #placeOf(key: string): number {
    let [low, high] = [0, this.#keys.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#keys[middle] as string) < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/**
 * Answers queries that name all `fields`, or all but the last and a beginning of that one, from an index of
 * these, in place of a walk through the collection.
 */
export function indexFields<Row extends Stored>(collection: Collection<Row>, fields: readonly string[]): KeyIndex<Row> {
  const keyOf = (row: object) => fields.map((field) => String(Reflect.get(row, field))).join(END);
  const index = new KeyIndex<Row>(collection, keyOf);
  const chain = collection.chain.bind(collection);
  // LokiJS maintains its own indexes in time that grows with the collection.
  collection.binaryIndices = {};
  collection.chain = () => {
    const rows = chain();
    const find = rows.find.bind(rows);
    rows.find = (query, firstOnly) => {
      const prefix = rows.filterInitialized ? undefined : prefixOf(query, fields);
      if (prefix !== undefined) {
        const found = [...index.range(prefix)];
        rows.filteredrows = found.flatMap(({ $loki = 0 }) => collection.get($loki, true)?.[1] ?? []);
        rows.filterInitialized = true;
      }
      return find(query, firstOnly);
    };
    return rows;
  };
  // A removal of several rows at once copies the collection.
  collection.findAndRemove = (query) => {
    for (const row of collection.find(query)) collection.remove(row);
  };
  return index;
}

/** The beginning of the keys that a query can match; `undefined` for a query of other fields. */
function prefixOf(query: Query, fields: readonly string[]): string | undefined {
  const [last = '', ...others] = fields.toReversed();
  const parts = others.toReversed().map((field) => query[field]);
  if (!parts.every((part) => typeof part === 'string')) return undefined;
  const value = query[last];
  if (typeof value === 'string') return [...parts, value, ''].join(END);
  // The form in which the emulator asks for a beginning.
  const { $regex: pattern } = (value ?? {}) as { readonly $regex?: unknown };
  const begin = typeof pattern === 'string' ? /^\^((?:[^\\^$*+?.()|[\]{}]|\\.)*)$/.exec(pattern)?.[1] : undefined;
  return value === undefined || begin !== undefined
    ? [...parts, (begin ?? '').replace(/\\(.)/g, '$1')].join(END)
    : undefined;
}
