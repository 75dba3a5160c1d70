// Rows in memory, by the rules of `functions/store/rows.ts`.
import type { Change, Row, Rows } from '../../../../functions/store/rows.ts';

export class MemoryRows implements Rows {
  readonly #partitions = new Map<string, Map<string, Row>>();
  #version = 0;

  async ensure(): Promise<void> {}

  async read(partition: string, key: string): Promise<Row | undefined> {
    return this.#partition(partition).get(key);
  }

  async scan(partition: string, from: string, to: string, limit: number): Promise<Row[]> {
    const rows = [...this.#partition(partition).values()].filter(({ key }) => key >= from && key < to);
    return rows.sort((a, b) => (a.key < b.key ? -1 : 1)).slice(0, limit);
  }

  async commit(partition: string, changes: readonly Change[]): Promise<boolean> {
    const rows = this.#partition(partition);
    if (new Set(changes.map(({ key }) => key)).size < changes.length) throw new Error('InvalidDuplicateRow');
    const fits = changes.every((change) => {
      const there = rows.get(change.key);
      if (change.type === 'insert') return !there;
      if (change.type === 'replace') return there?.version === change.version;
      return change.type === 'put' || there !== undefined;
    });
    if (!fits) return false;
    for (const change of changes) {
      if (change.type === 'remove') rows.delete(change.key);
      else rows.set(change.key, { key: change.key, value: structuredClone(change.value), version: this.#next() });
    }
    return true;
  }

  #next(): string {
    this.#version += 1;
    return String(this.#version);
  }

  #partition(name: string): Map<string, Row> {
    const found = this.#partitions.get(name) ?? new Map<string, Row>();
    this.#partitions.set(name, found);
    return found;
  }
}
