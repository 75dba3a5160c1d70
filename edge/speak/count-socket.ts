/** Sockets of one tenant in one isolate: idle ones cost memory and no allowance. */
export const SPEAK_SOCKETS_MAX = 64;
/** Sockets by tenant: open ones, and those that are being opened. */
const sockets = new Map<string, number>();

/**
 * Opens a socket and counts it until `ended` resolves. Returns `undefined` when the tenant has as many as it may. The
 * count rises before `open` begins, so that concurrent upgrades see each other.
 */
export async function countSocket<T extends { readonly ended: Promise<void> }>(
  tenant: string,
  open: () => Promise<T>,
): Promise<T | undefined> {
  const count = sockets.get(tenant) ?? 0;
  if (count >= SPEAK_SOCKETS_MAX) return undefined;
  sockets.set(tenant, count + 1);
  try {
    const opened = await open();
    void opened.ended.then(() => release(tenant));
    return opened;
  } catch (error) {
    release(tenant);
    throw error;
  }
}

function release(tenant: string): void {
  const left = (sockets.get(tenant) ?? 1) - 1;
  if (left > 0) sockets.set(tenant, left);
  else sockets.delete(tenant);
}
