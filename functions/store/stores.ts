// Storage clients of the functions. STORAGE.md lists contents and lifetimes.

import type { Settings } from '../settings.ts';
import { storageAccountOf } from './account.ts';
import { type Blobs, openPlainBlobs, type PlainBlobs } from './blobs.ts';
import { type Jobs, openJobs } from './jobs.ts';
import { type Notices, openNotices } from './notices.ts';
import type { Rows } from './rows.ts';
import { openTable } from './table-rows.ts';
import { openUsage, type Usage } from './usage.ts';

export interface Stores {
  readonly blobs: Blobs;
  readonly jobs: Jobs;
  readonly rows: Rows;
  readonly notices: Notices;
  readonly usage: Usage;
}

export function openStores(settings: Settings): Stores & { readonly blobs: PlainBlobs } {
  const storage = storageAccountOf(settings);
  const { JOBS_QUEUE, SQS_REGION, SQS_ENDPOINT, ZONES } = settings;
  return {
    blobs: openPlainBlobs(storage),
    jobs: openJobs({ prefix: JOBS_QUEUE, region: SQS_REGION, endpoint: SQS_ENDPOINT, zones: ZONES }),
    rows: openTable(storage, 'uploads'),
    notices: openNotices(storage),
    usage: openUsage(settings),
  };
}
