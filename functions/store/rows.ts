// The one interface to the table, as narrow as the promises the back office needs: rows in partitions, sorted by key,
// and transactions within a partition whose conditions say that nobody else was faster.

/** Values of a row: JSON, at most 150,000 characters of it. */
export type Value = Readonly<Record<string, unknown>>;

export interface Row {
  readonly key: string;
  readonly value: Value;
  /** Changes with every write of the row. */
  readonly version: string;
}

export type Change =
  /** Of a row that is not there. */
  | { readonly type: 'insert'; readonly key: string; readonly value: Value }
  /** Of a row that is as it was read. */
  | { readonly type: 'replace'; readonly key: string; readonly value: Value; readonly version: string }
  /** Whether it is there or not. */
  | { readonly type: 'put'; readonly key: string; readonly value: Value }
  /** Of a row that is there. */
  | { readonly type: 'remove'; readonly key: string };

export interface Rows {
  /** Makes the table if it is not there. */
  ensure(signal: AbortSignal): Promise<void>;
  read(partition: string, key: string): Promise<Row | undefined>;
  /** Rows with `from <= key < to` by rising key, at most `limit`. */
  scan(partition: string, from: string, to: string, limit: number): Promise<Row[]>;
  /**
   * All changes or none, at most one for each key. `false` when a condition does not hold: then nothing was written.
   * Throws when it is not known whether it was.
   */
  commit(partition: string, changes: readonly Change[]): Promise<boolean>;
}

/** The end of the range of keys that begin with `prefix`. */
export const endOf = (prefix: string): string => `${prefix}~`;
