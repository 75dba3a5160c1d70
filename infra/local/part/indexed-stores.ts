// Indexes of the storage emulator, so that a request costs the same with one upload stored as with ten
// thousand, and a listing of the blobs of a container that have changed since an earlier one.
import { createRequire } from 'node:module';
import { CHANGED_AFTER } from '../changed-after.ts';
import { type Collection, END, indexFields, KeyIndex, type Stored } from './sorted-keys.ts';

const require = createRequire(import.meta.url);

interface Database {
  readonly collections: readonly Collection<Stored>[];
  getCollection<Row extends Stored>(name: string): Collection<Row>;
}

interface Blob extends Stored {
  readonly accountName: string;
  readonly containerName: string;
  readonly snapshot: string;
  readonly isCommitted: boolean;
  readonly properties: { readonly etag: string };
  /** Number and ETag of the last change of its content or metadata. Numbers rise. */
  changed?: { readonly number: number; readonly etag: string };
}

/** Arguments of a listing as the emulator passes them. */
type Listing = [
  context: unknown,
  account: string,
  container: string,
  delimiter?: string,
  blob?: string,
  prefix?: string,
  most?: number,
  marker?: string,
  ...rest: unknown[],
];

export interface BlobStore {
  readonly db: Database;
  init(): Promise<void>;
  listBlobs(...params: Listing): Promise<[blobs: Blob[], prefixes: unknown[], marker: string]>;
}

interface Entity extends Stored {
  readonly PartitionKey: string;
  readonly RowKey: string;
}

interface EntityQuery {
  readonly filter?: string;
  readonly top?: number;
}

/** Arguments of a query as the emulator passes them; the two keys say where a page begins. */
type Querying = [
  context: unknown,
  account: string,
  table: string,
  query: EntityQuery,
  partition?: string,
  row?: string,
];

export interface TableStore {
  readonly db: Database;
  init(): Promise<void>;
  createCollectionForTable(table: { readonly account: string; readonly table: string }): void;
  getEntityCollection(account: string, table: string, context: unknown): Collection<Entity>;
  decodeContinuationHeader(header: string | undefined): string | undefined;
  getMaxResultsOption(query: EntityQuery): number;
  adjustQueryResultforTop(
    rows: Entity[],
    most: number,
  ): { readonly nextPartitionKeyResponse?: string; readonly nextRowKeyResponse?: string };
  queryTableEntities(...params: Querying): Promise<[Entity[], string | undefined, string | undefined]>;
}

/** Counts rows that queries have read so far. */
export interface Indexed {
  examined(): number;
}

const sumOf = (indexes: Iterable<{ readonly examined: number }>): number =>
  [...indexes].reduce((sum, { examined }) => sum + examined, 0);

/** Most blobs of a page: that of the service. */
const PAGE = 5_000;
/** Digits of the number of a change: microseconds since 1970. */
const CHANGE_DIGITS = 17;
const digits = (number: number): string => String(number).padStart(CHANGE_DIGITS, '0');

/** Indexes blobs by name and by change as soon as the store has read them. */
export function indexBlobs(store: BlobStore): Indexed {
  const indexes: { readonly examined: number }[] = [];
  const init = store.init.bind(store);
  store.init = async () => {
    await init();
    const blobs = store.db.getCollection<Blob>('$BLOBS_COLLECTION$');
    numberChanges(blobs);
    const byChange = new KeyIndex(blobs, ({ accountName, containerName, changed }) =>
      changed ? [accountName, containerName, digits(changed.number)].join(END) : undefined,
    );
    const byName = indexFields(blobs, ['accountName', 'containerName', 'name']);
    const blocks = store.db.getCollection<Stored>('$BLOCKS_COLLECTION$');
    indexes.push(byName, byChange, indexFields(blocks, ['accountName', 'containerName', 'blobName']));
    const listBlobs = store.listBlobs.bind(store);
    store.listBlobs = async (...params) => {
      const [, account, container, , , , most = PAGE, marker = ''] = params;
      if (!marker.startsWith(CHANGED_AFTER)) return listBlobs(...params);
      const after = Number(marker.slice(CHANGED_AFTER.length));
      const prefix = `${account}${END}${container}${END}`;
      const page: Blob[] = [];
      for (const blob of byChange.range(prefix, `${prefix}${digits(after + 1)}`)) if (page.push(blob) >= most) break;
      return [page, [], `${CHANGED_AFTER}${page.at(-1)?.changed?.number ?? after}`];
    };
  };
  return { examined: () => sumOf(indexes) };
}

/** Numbers each change of a blob: a new ETag. Numbers of changes before a restart are lower. */
function numberChanges(blobs: Collection<Blob>): void {
  let last = blobs.data.reduce((most, { changed }) => Math.max(most, changed?.number ?? 0), 0);
  const number = (blob: Blob) => {
    const { etag } = blob.properties;
    if (!blob.isCommitted || blob.snapshot !== '' || blob.changed?.etag === etag) return;
    last = Math.max(last + 1, Date.now() * 1_000);
    blob.changed = { number: last, etag };
  };
  for (const blob of blobs.data) number(blob);
  blobs.on('pre-insert', number);
  blobs.on('pre-update', number);
}

/** Indexes the rows of each table by partition and key. */
export function indexTables(store: TableStore): Indexed {
  const indexes = new Map<Collection<Stored>, KeyIndex<Entity>>();
  const index = (table: Collection<Stored>) => {
    const known = indexes.get(table);
    if (known) return known;
    const made = indexFields(table as Collection<Entity>, ['PartitionKey', 'RowKey']);
    indexes.set(table, made);
    return made;
  };
  store.queryTableEntities = async (...[context, account, table, query, partition, row]) => {
    const matches = generateFilter(query, context);
    const most = store.getMaxResultsOption(query);
    const { prefix, from, to } = rangeOf(query.filter);
    const next = [partition, row].map((key) => store.decodeContinuationHeader(key));
    const begin = next[0] === undefined ? from : next.map((key) => key ?? '').join(END);
    const found: Entity[] = [];
    const entities = store.getEntityCollection(account, table, context);
    for (const entity of index(entities).range(prefix, begin, to)) {
      if (matches(entity)) found.push(entity);
      if (found.length > most) break;
    }
    const { nextPartitionKeyResponse, nextRowKeyResponse } = store.adjustQueryResultforTop(found, most);
    return [found, nextPartitionKeyResponse, nextRowKeyResponse];
  };
  // Reads by key find their row in the index, too.
  const getEntities = store.getEntityCollection.bind(store);
  store.getEntityCollection = (...params) => {
    const entities = getEntities(...params);
    index(entities);
    return entities;
  };
  return { examined: () => sumOf(indexes.values()) };
}

type Filter = (entity: Entity) => boolean;

function generateFilter(query: EntityQuery, context: unknown): Filter {
  const generator: { default: { generateQueryForPersistenceLayer(query: EntityQuery, context: unknown): Filter } } =
    require('azurite/dist/src/table/persistence/LokiTableStoreQueryGenerator');
  return generator.default.generateQueryForPersistenceLayer(query, context);
}

const TEXT = "'((?:[^']|'')*)'";
const RANGE = new RegExp(`^PartitionKey eq ${TEXT} and RowKey ge ${TEXT} and RowKey lt ${TEXT}$`);

/** The keys that a filter of this form can match; of any other form all keys. */
function rangeOf(filter = ''): { readonly prefix: string; readonly from: string; readonly to: string | undefined } {
  const [, partition, from, to] = (RANGE.exec(filter) ?? []).map((text) => text.replaceAll("''", "'"));
  if (partition === undefined) return { prefix: '', from: '', to: undefined };
  return { prefix: `${partition}${END}`, from: [partition, from].join(END), to: [partition, to].join(END) };
}
