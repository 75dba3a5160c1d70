// The storage account: by a connection string, which holds the account's key, or by its addresses and the managed
// identity of the app.
import { TableClient, TableServiceClient } from '@azure/data-tables';
import type { TokenCredential } from '@azure/identity';
import {
  type BlobClient,
  type BlobGenerateSasUrlOptions,
  BlobServiceClient,
  type StoragePipelineOptions,
  type UserDelegationKey,
} from '@azure/storage-blob';
import { QueueServiceClient } from '@azure/storage-queue';
import { UPLOAD_S } from '../../shared/jobs/limits.ts';
import { STORAGE_PAUSE_MS, STORAGE_TRIES_MAX } from '../limits.ts';
import type { Settings } from '../settings.ts';
import { callStorage } from './storage-call.ts';

/** Life of a user delegation key: twice that of the longest address, so that one key signs for half a day. */
const DELEGATION_MS = 2 * UPLOAD_S * 1_000;
/** Time before now from which such a key is valid: addresses begin a minute before now, since clocks differ. */
const DELEGATION_SKEW_MS = 120_000;

export interface IdentityAccount {
  readonly blobs: string;
  readonly queues: string;
  readonly tables: string;
  readonly credential: TokenCredential;
}

export type StorageAccount = string | IdentityAccount;

/** Returns the account of the settings, which have one of both (`check-settings.ts`). */
export function storageAccountOf(settings: Settings): StorageAccount {
  const { STORAGE_CONNECTION__blobServiceUri: blobs, STORAGE_CONNECTION__queueServiceUri: queues } = settings;
  const { STORAGE_CONNECTION__tableServiceUri: tables, STORAGE_CONNECTION__clientId: clientId } = settings;
  if (blobs === undefined || queues === undefined || tables === undefined) return settings.STORAGE_CONNECTION ?? '';
  return { blobs, queues, tables, credential: managedIdentity(clientId) };
}

/** Returns the identity of the app; `clientId` names a user-assigned one. Loaded on demand: key holders start without. */
function managedIdentity(clientId: string | undefined): TokenCredential {
  let credential: Promise<TokenCredential> | undefined;
  const open = async () => {
    const { ManagedIdentityCredential } = await import('@azure/identity');
    return clientId === undefined ? new ManagedIdentityCredential() : new ManagedIdentityCredential({ clientId });
  };
  return {
    async getToken(scopes, options) {
      credential ??= open();
      return (await credential).getToken(scopes, options);
    },
  };
}

export function openBlobService(account: StorageAccount, options: StoragePipelineOptions = {}): BlobServiceClient {
  if (typeof account === 'string') return BlobServiceClient.fromConnectionString(account, options);
  return new BlobServiceClient(account.blobs, account.credential, options);
}

export function openQueueService(account: StorageAccount): QueueServiceClient {
  if (typeof account === 'string') return QueueServiceClient.fromConnectionString(account);
  return new QueueServiceClient(account.queues, account.credential);
}

/** Opens a table, and the service that creates it. */
export function openTableClients(account: StorageAccount, name: string) {
  const retryOptions = { maxRetries: STORAGE_TRIES_MAX - 1, retryDelayInMs: STORAGE_PAUSE_MS };
  if (typeof account === 'string') {
    const options = { allowInsecureConnection: /\bhttp:/.test(account), retryOptions };
    return {
      table: TableClient.fromConnectionString(account, name, options),
      service: TableServiceClient.fromConnectionString(account, options),
    };
  }
  const { tables, credential } = account;
  return {
    table: new TableClient(tables, name, credential, { retryOptions }),
    service: new TableServiceClient(tables, credential, { retryOptions }),
  };
}

type AddressOptions = BlobGenerateSasUrlOptions & { readonly expiresOn: Date };

/** Returns what signs addresses of blobs: by the account's key, or by a key that storage delegates to the identity. */
export function openAddressSigner(account: StorageAccount, service: BlobServiceClient) {
  if (typeof account === 'string') return (blob: BlobClient, options: AddressOptions) => blob.generateSasUrl(options);
  let held: { readonly key: Promise<UserDelegationKey>; readonly until: number } | undefined;
  const fetchKey = () => {
    const now = Date.now();
    const [from, until] = [new Date(now - DELEGATION_SKEW_MS), new Date(now + DELEGATION_MS)];
    const key = callStorage('read', (options) => service.getUserDelegationKey(from, until, options));
    const fetched = { key, until: until.getTime() };
    key.catch(() => {
      if (held === fetched) held = undefined;
    });
    return fetched;
  };
  return async (blob: BlobClient, options: AddressOptions) => {
    if (!held || held.until < options.expiresOn.getTime()) held = fetchKey();
    return blob.generateUserDelegationSasUrl(options, await held.key);
  };
}
