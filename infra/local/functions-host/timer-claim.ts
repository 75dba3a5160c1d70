// Claims of timer runs. Several hosts of one app may share a storage account, as instances in the cloud do;
// one of them claims each run, and a blob names the last one.
import type { HostContext } from './context.ts';

const HOSTS = 'azure-webjobs-hosts';
/** Statuses of a concurrent write: the blob exists already, or has changed. */
const CONFLICT = new Set([409, 412]);

const statusOf = (error: unknown): number | undefined => (error as { statusCode?: number }).statusCode;

/** Claims a run: true for one host at most, and for none once a later run was claimed. */
export async function claimRun(
  { accounts, hostId }: Pick<HostContext, 'accounts' | 'hostId'>,
  timer: string,
  scheduled: Date,
): Promise<boolean> {
  const container = accounts.blobs().getContainerClient(HOSTS);
  const blob = container.getBlockBlobClient(`timers/${hostId}/${timer}/status`);
  const run = scheduled.toISOString();
  for (;;) {
    const found = await blob.getProperties().catch((error: unknown) => {
      if (statusOf(error) === 404) return undefined;
      throw error;
    });
    if (found && (found.metadata?.last ?? '') >= run) return false;
    const conditions = found?.etag === undefined ? { ifNoneMatch: '*' } : { ifMatch: found.etag };
    try {
      await blob.upload('', 0, { metadata: { last: run }, conditions });
      return true;
    } catch (error) {
      const status = statusOf(error) ?? 0;
      // The first claim of a storage account finds no container.
      if (status === 404) await container.createIfNotExists();
      else if (!CONFLICT.has(status)) throw error;
    }
  }
}
