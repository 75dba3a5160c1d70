/** Tenants of one answer: the caller reads the usage of each. */
export const TENANTS_PAGE_MAX = 100;

/** Names of the tenants with usage in a zone, by month; their Gates cannot be listed. */
export class StoredTenants {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec('CREATE TABLE IF NOT EXISTS tenant (month TEXT, name TEXT, PRIMARY KEY (month, name)) WITHOUT ROWID');
  }

  add(month: string, name: string): void {
    this.#sql.exec('INSERT OR IGNORE INTO tenant VALUES (?, ?)', month, name);
  }

  /** Returns names after `after` in order. */
  list(month: string, after: string): string[] {
    const query = 'SELECT name FROM tenant WHERE month = ? AND name > ? ORDER BY name LIMIT ?';
    return this.#sql
      .exec<{ name: string }>(query, month, after, TENANTS_PAGE_MAX)
      .toArray()
      .map(({ name }) => name);
  }
}
