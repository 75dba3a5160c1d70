// The index of a subject's number, and its removal.

import { TRANSACTION_ROWS_MAX } from '../../limits.ts';
import { endOf, type Rows } from '../../store/rows.ts';
import { partitionOf } from './entry-rows.ts';

/**
 * Index records of a subject that are counted before their erasure; further ones are erased and not counted.
 */
const INDEX_COUNTED_MAX = 50_000;

/** Finds records by the number of their subject, and forgets them. */
export interface SubjectIndex {
  /** Counts the indexed records. */
  count(tenant: string, sid: string): Promise<number>;
  forget(tenant: string, sid: string): Promise<void>;
}

/** Rounds of removal: all countable rows, and twice as many for concurrent writes. */
const ROUNDS = 3 * Math.ceil(INDEX_COUNTED_MAX / TRANSACTION_ROWS_MAX);

export function subjectIndex(rows: Rows, zone: string): SubjectIndex {
  const scan = (tenant: string, sid: string, limit: number) =>
    rows.scan(partitionOf('subject', zone, tenant, sid), '', endOf(''), limit);
  return {
    count: async (tenant, sid) => (await scan(tenant, sid, INDEX_COUNTED_MAX)).length,
    async forget(tenant, sid) {
      for (let round = 0; round < ROUNDS; round += 1) {
        const found = await scan(tenant, sid, TRANSACTION_ROWS_MAX);
        if (found.length === 0) return;
        // A row that another process removes meanwhile is gone, too.
        const changes = found.map(({ key }) => ({ type: 'remove', key }) as const);
        await rows.commit(partitionOf('subject', zone, tenant, sid), changes);
      }
      throw new Error('the index still knows a subject');
    },
  };
}
