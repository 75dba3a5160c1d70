// Blob, queue and table emulator, in this process, on the configured ports.
import { mkdirSync } from 'node:fs';
import type { Server as HttpServer } from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';
import process from 'node:process';
import { Capacity, refuseWhenFull } from './capacity.ts';
import { flushFirst } from './flush-first.ts';
import { type BlobStore, indexBlobs, indexTables, type TableStore } from './indexed-stores.ts';
import { type Database, Journal } from './journal.ts';

// The emulator has no programmatic entry; these are the classes behind its command line.
type Store = { readonly db: Database };
type Server = {
  start(): Promise<void>;
  close(): Promise<void>;
  readonly httpServer: HttpServer;
  readonly metadataStore: Store;
  readonly extentMetadataStore?: Store;
};
type Configured = new (...settings: unknown[]) => unknown;
type Serving = new (configuration: unknown) => Server;

const require = createRequire(import.meta.url);
const load = <T>(file: string): T => {
  const loaded = require(`azurite/dist/src/${file}`);
  return loaded.default ?? loaded;
};

/** Keep-alive of an idle connection, in seconds. */
const KEEP_ALIVE_S = 5;

const folder = process.env.DATA ?? '';
mkdirSync(folder, { recursive: true });
const host = '127.0.0.1';
const at = (name: string) => path.join(folder, name);
const extent = (name: string) => [{ locationId: 'Default', locationPath: at(name), maxConcurrency: 50 }];

// Positional settings: no access log (twice), no debug log (twice), not loose, API version check skipped (the client
// library is newer than the emulator), no TLS (three times), no OAuth, no product-style names, not in memory.
const tail = [false, undefined, false, undefined, false, true, '', '', '', undefined, false, false];

const BlobConfiguration = load<Configured>('blob/BlobConfiguration');
const QueueConfiguration = load<Configured>('queue/QueueConfiguration');
const TableConfiguration = load<Configured>('table/TableConfiguration');
const servers: Server[] = [
  new (load<Serving>('blob/BlobServer'))(
    new BlobConfiguration(
      host,
      Number(process.env.BLOB_PORT),
      KEEP_ALIVE_S,
      at('blob.json'),
      at('blob-extent.json'),
      extent('blobs'),
      ...tail,
    ),
  ),
  new (load<Serving>('queue/QueueServer'))(
    new QueueConfiguration(
      host,
      Number(process.env.QUEUE_PORT),
      KEEP_ALIVE_S,
      at('queue.json'),
      at('queue-extent.json'),
      extent('queues'),
      ...tail,
    ),
  ),
  new (load<Serving>('table/TableServer'))(
    // The table emulator takes the two log flags first, then the two places they write to.
    new TableConfiguration(
      host,
      Number(process.env.TABLE_PORT),
      KEEP_ALIVE_S,
      at('table.json'),
      false,
      false,
      undefined,
      ...tail.slice(3),
    ),
  ),
];

const capacity = new Capacity({ folder, now: () => performance.now(), log: (line) => console.error(line) });
for (const { httpServer, metadataStore, extentMetadataStore } of servers) {
  const stores = [metadataStore, ...(extentMetadataStore ? [extentMetadataStore] : [])];
  flushFirst(
    httpServer,
    stores.map(({ db }) => new Journal(db)),
  );
  refuseWhenFull(httpServer, capacity);
}
const [blobs, , tables] = servers;
indexBlobs(blobs?.metadataStore as Store & BlobStore);
indexTables(tables?.metadataStore as Store & TableStore);
await Promise.all(servers.map((server) => server.start()));
process.on('SIGTERM', () => {
  void Promise.allSettled(servers.map((server) => server.close())).then(() => process.exit(0));
});
process.send?.('ready');
