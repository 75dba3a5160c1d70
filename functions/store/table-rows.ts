// Rows in Azure Tables.

import { odata, RestError, type TransactionAction } from '@azure/data-tables';
import { openTableClients, type StorageAccount } from './account.ts';
import type { Change, Row, Rows, Value } from './rows.ts';
import { callStorage } from './storage-call.ts';

/** Part of a value in one property: Azure Tables takes 64 KiB of UTF-16. */
export const PROPERTY_CHARACTERS = 30_000;
/** Properties that one value is split over: a row stays far below the 1 MiB of Azure Tables. */
export const PROPERTIES_PER_VALUE_MAX = 5;

type Entity = { partitionKey: string; rowKey: string; etag?: string } & Record<string, unknown>;

export function openTable(storage: StorageAccount, name: string): Rows {
  const { table, service } = openTableClients(storage, name);
  return {
    async ensure(signal) {
      await service.createTable(name, { abortSignal: signal });
    },
    async read(partition, key) {
      try {
        return rowOf(await callStorage('read', (options) => table.getEntity<Entity>(partition, key, options)));
      } catch (error) {
        if (statusOf(error) === 404) return undefined;
        throw error;
      }
    },
    async scan(partition, from, to, limit) {
      const filter = odata`PartitionKey eq ${partition} and RowKey ge ${from} and RowKey lt ${to}`;
      const maxPageSize = Math.min(limit, 1_000);
      return callStorage('read', async (options) => {
        const rows: Row[] = [];
        for await (const page of table
          .listEntities<Entity>({ queryOptions: { filter }, ...options })
          .byPage({ maxPageSize })) {
          rows.push(...page.map(rowOf));
          if (rows.length >= limit) break;
        }
        return rows.slice(0, limit);
      });
    },
    async commit(partition, changes) {
      try {
        const actions = changes.map((change) => actionOf(partition, change));
        await callStorage('write', (options) => table.submitTransaction(actions, options));
        return true;
      } catch (error) {
        // 404: removed meanwhile. 409: inserted meanwhile. 412: changed meanwhile.
        if ([404, 409, 412].includes(statusOf(error) ?? 0)) return false;
        throw error;
      }
    },
  };
}

const statusOf = (error: unknown): number | undefined => (error instanceof RestError ? error.statusCode : undefined);

function rowOf(entity: Entity): Row {
  const text = Array.from({ length: PROPERTIES_PER_VALUE_MAX }, (_, part) => entity[`json${part}`] ?? '').join('');
  return { key: entity.rowKey, value: JSON.parse(text) as Value, version: entity.etag ?? '' };
}

function actionOf(partition: string, change: Change): TransactionAction {
  const entity: Entity = { partitionKey: partition, rowKey: change.key };
  if (change.type === 'remove') return ['delete', entity];
  const text = JSON.stringify(change.value);
  if (text.length > PROPERTY_CHARACTERS * PROPERTIES_PER_VALUE_MAX)
    throw new Error(`the row is too long: ${text.length} characters`);
  for (let part = 0; part * PROPERTY_CHARACTERS < text.length; part += 1) {
    entity[`json${part}`] = text.slice(part * PROPERTY_CHARACTERS, (part + 1) * PROPERTY_CHARACTERS);
  }
  if (change.type === 'insert') return ['create', entity];
  if (change.type === 'put') return ['upsert', entity, 'Replace'];
  return ['update', entity, 'Replace', { etag: change.version }];
}
