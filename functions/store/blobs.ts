// Blob operations of the functions: names, sizes and versions, the first bytes of an envelope, and addresses
// for other readers and writers. No function reads sealed content, and none could open it.
import { createHash } from 'node:crypto';
import { BlobSASPermissions, RestError } from '@azure/storage-blob';
import { OUTCOMES, UPLOADS } from '../../shared/jobs/paths.ts';
import { type BlobTier, blobTier, type RehydratePriority } from '../../shared/registry/tiers.ts';
import { STORAGE_PAUSE_MS, STORAGE_TRIES_MAX } from '../limits.ts';
import { openAddressSigner, openBlobService, type StorageAccount } from './account.ts';
import { callStorage } from './storage-call.ts';

/** Validity of the address that a copy reads, ms. */
const COPY_MS_MAX = 3_600_000;
/** Time before now from which a signed address is valid, since clocks differ. */
const BLOB_SKEW_MS = 60_000;

/** Files of models, each named by the SHA-256 of its bytes in hex, and uploads of them. */
export const MODELS = 'models';
export const MODEL_UPLOADS = 'model-uploads';

/** Containers that the functions own. */
export const containers = [UPLOADS, OUTCOMES, MODELS, MODEL_UPLOADS] as const;
export type ContainerName = (typeof containers)[number];

export interface BlobFacts {
  readonly name: string;
  readonly bytes: number;
  /** Version; as in the header `etag`, with its quotes. */
  readonly etag: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly placed?: Placement;
  /** State of a copy into this blob that has not succeeded: the blob exists without its bytes. */
  readonly copy?: 'pending' | 'failed';
}

/** Access tier of a blob. */
export interface Placement {
  readonly tier: BlobTier;
  /** Arrival in the tier, ms since 1970. */
  readonly since: number;
  /** Return from archive in progress; the bytes cannot be read until its end. */
  readonly returning?: { readonly to: BlobTier; readonly priority: RehydratePriority };
}

/**
 * Right of an address: `create` fails when the blob exists; `write` creates or replaces, also by blocks. An
 * address carries one right.
 */
export type Right = 'read' | 'create' | 'write';

export interface Blobs {
  /** Creates missing containers; leaves existing ones alone. */
  ensure(signal: AbortSignal): Promise<void>;
  find(container: ContainerName, name: string): Promise<BlobFacts | undefined>;
  /** Returns the first bytes of that version, at most `length`; `undefined` when it is gone. */
  start(container: ContainerName, found: BlobFacts, length: number): Promise<Uint8Array | undefined>;
  list(container: ContainerName, prefix: string): Promise<BlobFacts[]>;
  /** Writes a small sealed blob unless the name exists. */
  create(container: ContainerName, name: string, bytes: Uint8Array): Promise<'created' | 'exists'>;
  /** Removes the blob, if it exists. */
  remove(container: ContainerName, name: string): Promise<void>;
  /** Returns an address with one right on one blob, until `expires` (ms since 1970). */
  address(container: ContainerName, name: string, right: Right, expires: number): Promise<string>;
}

/** Blobs that the functions may read whole. */
export interface PlainBlobs extends Blobs {
  /** Returns the SHA-256 in hex of that version; `undefined` when it is gone. Holds one chunk at a time. */
  digest(container: ContainerName, found: BlobFacts): Promise<string | undefined>;
  /**
   * Copies that version into another container. `false` when the version is gone, the name exists there, or the copy
   * is pending: `find` then reports the state of the destination.
   */
  copy(from: ContainerName, to: ContainerName, found: BlobFacts): Promise<boolean>;
  /** Changes the tier of a blob in place. A return from archive takes hours, and a higher priority replaces a lower. */
  setTier(container: ContainerName, name: string, tier: BlobTier, priority?: RehydratePriority): Promise<void>;
  /** Removes that version, if it is still there; breaks a lease on it. A blob with a pending copy into it stays. */
  discard(container: ContainerName, found: BlobFacts): Promise<void>;
}

const accessTiers = { hot: 'Hot', cool: 'Cool', cold: 'Cold', archive: 'Archive' } as const;

const permissions: Record<Right, string> = { read: 'r', create: 'c', write: 'cw' };

export function openBlobs(storage: StorageAccount): Blobs {
  const account = openBlobService(storage, {
    retryOptions: { maxTries: STORAGE_TRIES_MAX, retryDelayInMs: STORAGE_PAUSE_MS },
  });
  const sign = openAddressSigner(storage, account);
  const blob = (container: ContainerName, name: string) => account.getContainerClient(container).getBlobClient(name);
  return {
    async ensure(signal) {
      await Promise.all(
        containers.map((name) => account.getContainerClient(name).createIfNotExists({ abortSignal: signal })),
      );
    },
    async find(container, name) {
      try {
        const found = await callStorage('read', (options) => blob(container, name).getProperties(options));
        const { contentLength = 0, etag = '', metadata = {} } = found;
        return {
          name,
          bytes: contentLength,
          etag: quoted(etag),
          metadata,
          placed: placementOf(found),
          ...copyOf(found),
        };
      } catch (error) {
        if (isStatus(error, 404)) return undefined;
        throw error;
      }
    },
    async start(container, { name, etag, bytes }, length) {
      if (bytes === 0) return new Uint8Array(0);
      try {
        const conditions = { ifMatch: etag };
        return await callStorage('read', (options) =>
          blob(container, name).downloadToBuffer(0, Math.min(bytes, length), { conditions, ...options }),
        );
      } catch (error) {
        if (isStatus(error, 404) || isStatus(error, 412)) return undefined;
        throw error;
      }
    },
    async list(container, prefix) {
      const found: BlobFacts[] = [];
      const items = account
        .getContainerClient(container)
        .listBlobsFlat({ prefix, includeMetadata: true, includeCopy: true });
      for await (const { name, properties, metadata = {} } of items) {
        const { contentLength: bytes = 0, etag } = properties;
        const placed = placementOf(properties);
        found.push({ name, bytes, etag: quoted(etag), metadata, placed, ...copyOf(properties) });
      }
      return found;
    },
    async create(container, name, bytes) {
      const conditions = { ifNoneMatch: '*' };
      try {
        const file = account.getContainerClient(container).getBlockBlobClient(name);
        await callStorage('write', (options) => file.uploadData(bytes, { conditions, ...options }));
        return 'created';
      } catch (error) {
        if (isStatus(error, 409) || isStatus(error, 412)) return 'exists';
        throw error;
      }
    },
    async remove(container, name) {
      await callStorage('write', (options) => blob(container, name).deleteIfExists(options));
    },
    async address(container, name, right, expires) {
      return sign(blob(container, name), {
        permissions: BlobSASPermissions.parse(permissions[right]),
        startsOn: new Date(Date.now() - BLOB_SKEW_MS),
        expiresOn: new Date(expires),
      });
    },
  };
}

interface TierHeaders {
  readonly accessTier?: string;
  readonly archiveStatus?: string;
  readonly rehydratePriority?: string;
  readonly accessTierChangedOn?: Date;
  readonly createdOn?: Date;
}

const RETURNING = 'rehydrate-pending-to-';

/** Parses the headers of a tier; a blob without them is in the default tier of its account, hot. */
function placementOf({ accessTier, archiveStatus, rehydratePriority, ...times }: TierHeaders): Placement {
  const tier = blobTier.catch('hot').parse(accessTier?.toLowerCase());
  const since = (times.accessTierChangedOn ?? times.createdOn)?.getTime() ?? 0;
  if (!archiveStatus?.startsWith(RETURNING)) return { tier, since };
  const to = blobTier.catch('hot').parse(archiveStatus.slice(RETURNING.length));
  const priority = rehydratePriority?.toLowerCase() === 'high' ? 'high' : 'standard';
  return { tier, since, returning: { to, priority } };
}

/** Returns the state of a copy that has not succeeded. A failed or aborted copy leaves a blob of 0 bytes. */
function copyOf({ copyStatus }: { readonly copyStatus?: string }): Pick<BlobFacts, 'copy'> {
  if (copyStatus === undefined || copyStatus === 'success') return {};
  return { copy: copyStatus === 'pending' ? 'pending' : 'failed' };
}

/** Adds quotes: lists give versions without them, headers with them. */
const quoted = (etag: string): string => (etag.startsWith('"') || etag === '' ? etag : `"${etag}"`);

const isStatus = (error: unknown, status: number): boolean => error instanceof RestError && error.statusCode === status;

/** Opens blobs that the functions may read whole. */
export function openPlainBlobs(storage: StorageAccount): PlainBlobs {
  const blobs = openBlobs(storage);
  const account = openBlobService(storage);
  const blob = (container: ContainerName, name: string) => account.getContainerClient(container).getBlobClient(name);
  return {
    ...blobs,
    async digest(container, { name, etag }) {
      try {
        const { readableStreamBody } = await blob(container, name).download(0, undefined, {
          conditions: { ifMatch: etag },
        });
        const hash = createHash('sha256');
        for await (const chunk of readableStreamBody ?? []) hash.update(chunk);
        return hash.digest('hex');
      } catch (error) {
        if (isStatus(error, 404) || isStatus(error, 412)) return undefined;
        throw error;
      }
    },
    async copy(from, to, { name, etag }) {
      const source = await blobs.address(from, name, 'read', Date.now() + COPY_MS_MAX);
      try {
        const copying = await blob(to, name).beginCopyFromURL(source, {
          sourceConditions: { ifMatch: etag },
          conditions: { ifNoneMatch: '*' },
        });
        return copying.isDone();
      } catch (error) {
        if ([404, 409, 412].some((status) => isStatus(error, status))) return false;
        throw error;
      }
    },
    async setTier(container, name, tier, priority) {
      const returning = priority && ({ rehydratePriority: priority === 'high' ? 'High' : 'Standard' } as const);
      await callStorage('write', (options) =>
        blob(container, name).setAccessTier(accessTiers[tier], { ...options, ...returning }),
      );
    },
    async discard(container, { name, etag }) {
      const upload = blob(container, name);
      const remove = () => upload.deleteIfExists({ conditions: { ifMatch: etag } });
      try {
        await remove();
      } catch (error) {
        if (error instanceof RestError && error.code === 'PendingCopyOperation') return;
        if (!isStatus(error, 412)) throw error;
        if ((error as RestError).code !== 'LeaseIdMissing') return;
        await upload.getBlobLeaseClient().breakLease(0);
        await remove();
      }
    },
  };
}
