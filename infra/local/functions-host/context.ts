// Dependencies of the host's triggers.
import { setTimeout as sleep } from 'node:timers/promises';
import type { HostJson } from './host-json.ts';
import type { HostLog } from './registry.ts';
import type { Accounts } from './storage.ts';

/** A written blob, as Event Grid would report it. */
export type BlobEvent = { function: string; container: string; name: string; etag: string };

export type HostContext = {
  settings: Record<string, string | undefined>;
  hostJson: HostJson;
  accounts: Accounts;
  /** Name of the app in the cursors of its blob triggers. */
  hostId: string;
  log: HostLog;
  /** Shortest interval between two polls of a queue or container, ms. */
  pollMs: number;
  /** Number of deliveries of a blob event; see HostOptions. */
  deliveries: (event: BlobEvent) => number;
  /** Aborts when the host stops; running work finishes, and no new work begins. */
  stopping: AbortSignal;
  /** Delays the end of the host until `work` is done. */
  track<T>(work: Promise<T>): Promise<T>;
};

/** Longest interval between two polls of an idle trigger, ms: an idle stack should cost next to nothing. */
const IDLE_MS_MAX = 1_000;

/** Polls until the host stops. `look` returns whether there was work; its errors are logged. */
export async function poll(context: HostContext, name: string, look: () => Promise<boolean>): Promise<void> {
  let idleMs = context.pollMs;
  while (!context.stopping.aborted) {
    let found = false;
    try {
      found = await context.track(look());
    } catch (error) {
      if (context.stopping.aborted) return;
      context.log('error', `${name}: cannot look for work: ${describe(error)}`);
      idleMs = IDLE_MS_MAX;
    }
    if (found) {
      idleMs = context.pollMs;
      continue;
    }
    await sleep(idleMs, undefined, { signal: context.stopping }).catch(() => {});
    idleMs = Math.min(IDLE_MS_MAX, idleMs * 1.5);
  }
}

export function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
