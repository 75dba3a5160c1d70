// Logs in Azure Blob Storage: one container for each area.
import { type BlobServiceClient, RestError } from '@azure/storage-blob';
import { STORAGE_PAUSE_MS, STORAGE_TRIES_MAX } from '../../limits.ts';
import { openBlobService, type StorageAccount } from '../../store/account.ts';
import { type Area, areas, type Leases, type LogStore } from './log-store.ts';
import { StorageClock } from './storage-clock.ts';

/** Most names that the service returns in one answer. */
const PAGE_MAX = 5_000;

const containerOf = (area: Area): string => `audit-${area}`;

export interface BlobLogStore extends LogStore, Leases {
  /** Makes the containers that are not there. */
  ensure(signal: AbortSignal): Promise<void>;
}

export function openBlobLogStore(storage: StorageAccount): BlobLogStore {
  const account = openBlobService(storage, {
    // A call that was tried again may find its own work done: 409 and 412 tell no more.
    retryOptions: { maxTries: STORAGE_TRIES_MAX, retryDelayInMs: STORAGE_PAUSE_MS },
  });
  const time = new StorageClock();
  const container = (area: Area) => account.getContainerClient(containerOf(area));
  const blob = (area: Area, name: string) => container(area).getBlockBlobClient(name);
  const put = async (
    area: Area,
    name: string,
    bytes: Uint8Array,
    conditions: { ifMatch?: string; ifNoneMatch?: string },
  ) => {
    const answered = blob(area, name).upload(bytes as Uint8Array<ArrayBuffer>, bytes.length, { conditions });
    return unless(
      [409, 412],
      answered.then(() => true),
      false,
    );
  };
  return {
    async ensure(abortSignal) {
      await Promise.all(areas.map((area) => container(area).createIfNotExists({ abortSignal })));
    },
    async read(area, name) {
      return unless([404], readAll(blob(area, name), time), undefined, time);
    },
    create: (area, name, bytes) => put(area, name, bytes, { ifNoneMatch: '*' }),
    replace: (area, name, bytes, version) => put(area, name, bytes, { ifMatch: version }),
    async list(area, prefix, limit) {
      const names: string[] = [];
      const pages = container(area)
        .listBlobsFlat({ prefix })
        .byPage({ maxPageSize: Math.min(limit, PAGE_MAX) });
      for await (const { segment } of pages) {
        names.push(...segment.blobItems.map(({ name }) => name));
        if (names.length >= limit) break;
      }
      return names.slice(0, limit);
    },
    async remove(area, name) {
      await blob(area, name).deleteIfExists();
    },
    clock: () => time.now(),
    async isLocked() {
      return (await container('log').getProperties()).hasImmutabilityPolicy;
    },
    async hold(name, seconds, id) {
      const target = blob('state', name);
      await put('state', name, new Uint8Array(0), { ifNoneMatch: '*' });
      const lease = target.getBlobLeaseClient(id);
      const leased = id === undefined ? lease.acquireLease(seconds) : lease.renewLease();
      return unless(
        [409, 412],
        leased.then(({ leaseId }) => leaseId),
        undefined,
      );
    },
    async release(name, id) {
      await unless([409, 412], blob('state', name).getBlobLeaseClient(id).releaseLease(), undefined);
    },
  };
}

async function readAll(
  from: ReturnType<ReturnType<BlobServiceClient['getContainerClient']>['getBlockBlobClient']>,
  time: StorageClock,
) {
  const answer = await from.download();
  time.observe(answer.date);
  const pieces: Buffer[] = [];
  for await (const piece of answer.readableStreamBody ?? []) pieces.push(piece as Buffer);
  return { bytes: new Uint8Array(Buffer.concat(pieces)), version: answer.etag ?? '' };
}

async function unless<T, Otherwise>(
  statuses: number[],
  call: Promise<T>,
  otherwise: Otherwise,
  time?: StorageClock,
): Promise<T | Otherwise> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof RestError && statuses.includes(error.statusCode ?? 0))) throw error;
    time?.observe(new Date(error.response?.headers.get('date') ?? ''));
    return otherwise;
  }
}
