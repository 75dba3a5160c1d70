// Table interface, as narrow as the functions need: rows in partitions, sorted by key, and transactions
// within a partition whose conditions detect concurrent writes.

/** Values of a row: JSON, at most 150,000 characters of it. */
export type Value = Readonly<Record<string, unknown>>;

export interface Row {
  readonly key: string;
  readonly value: Value;
  /** Changes with every write of the row. */
  readonly version: string;
}

export type Change =
  /** Requires that the row is absent. */
  | { readonly type: 'insert'; readonly key: string; readonly value: Value }
  /** Requires the version that was read. */
  | { readonly type: 'replace'; readonly key: string; readonly value: Value; readonly version: string }
  /** Has no condition. */
  | { readonly type: 'put'; readonly key: string; readonly value: Value }
  /** Requires that the row exists. */
  | { readonly type: 'remove'; readonly key: string };

export interface Rows {
  /** Creates the table if it is missing. */
  ensure(signal: AbortSignal): Promise<void>;
  read(partition: string, key: string): Promise<Row | undefined>;
  /** Returns rows with `from <= key < to` by rising key, at most `limit`. */
  scan(partition: string, from: string, to: string, limit: number): Promise<Row[]>;
  /**
   * Applies all changes or none, at most one for each key. `false` when a condition does not hold: then
   * nothing was written. Throws when the result is unknown.
   */
  commit(partition: string, changes: readonly Change[]): Promise<boolean>;
}

/** Returns the end of the range of keys that begin with `prefix`. */
export const endOf = (prefix: string): string => `${prefix}~`;
