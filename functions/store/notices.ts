// Queue of webhook notices. A notice names its upload; the sender reads its content from the row. `tries`
// numbers the delivery, so that a duplicated message sends once.
import { z } from 'zod';
import { recordId } from '../../shared/jobs/job.ts';
import { tenantName } from '../../shared/names.ts';
import { openQueueService, type StorageAccount } from './account.ts';

export const NOTICES = 'upload-notices';

export const notice = z.object({ tenant: tenantName, id: recordId, run: z.number().int(), tries: z.number().int() });
export type Notice = z.infer<typeof notice>;

export interface Notices {
  ensure(signal: AbortSignal): Promise<void>;
  /** Enqueues a notice, visible at once or after `delaySeconds`. */
  send(notice: Notice, delaySeconds?: number): Promise<void>;
}

export function openNotices(storage: StorageAccount): Notices {
  const queue = openQueueService(storage).getQueueClient(NOTICES);
  return {
    async ensure(signal) {
      await queue.createIfNotExists({ abortSignal: signal });
    },
    async send(one, delaySeconds = 0) {
      // The functions host reads base64 (host.json).
      await queue.sendMessage(btoa(JSON.stringify(one)), { visibilityTimeout: delaySeconds });
    },
  };
}
