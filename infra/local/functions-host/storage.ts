// Storage accounts of bindings, by the setting that holds their connection string.
import { BlobServiceClient } from '@azure/storage-blob';
import { QueueServiceClient } from '@azure/storage-queue';

export type Accounts = {
  blobs(connection?: string): BlobServiceClient;
  queues(connection?: string): QueueServiceClient;
};

export function openAccounts(settings: Record<string, string | undefined>): Accounts {
  const connectionString = (name = 'AzureWebJobsStorage') => {
    const value = settings[name] ?? settings[`AzureWebJobs${name}`];
    if (!value) throw new Error(`a binding uses the connection "${name}", which is not set`);
    return value;
  };
  return {
    blobs: (connection) => BlobServiceClient.fromConnectionString(connectionString(connection)),
    queues: (connection) => QueueServiceClient.fromConnectionString(connectionString(connection)),
  };
}
