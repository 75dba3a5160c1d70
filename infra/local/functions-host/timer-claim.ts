// Several hosts of one app may share a storage account, as instances in the cloud do: of each run of a timer one of them
// takes hold, and a blob says which run was the last.
import type { HostContext } from './context.ts';

const HOSTS = 'azure-webjobs-hosts';
/** Somebody else has written: the blob is there already, or is another by now. */
const CONFLICT = new Set([409, 412]);

const statusOf = (error: unknown): number | undefined => (error as { statusCode?: number }).statusCode;

/** Whether this run is ours: true for one host at most, and for none once a later run was taken. */
export async function claimRun(
  { accounts, hostId }: Pick<HostContext, 'accounts' | 'hostId'>,
  timer: string,
  scheduled: Date,
): Promise<boolean> {
  const container = accounts.blobs().getContainerClient(HOSTS);
  await container.createIfNotExists();
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
      if (!CONFLICT.has(statusOf(error) ?? 0)) throw error;
    }
  }
}
