// What every trigger of the host needs.
import { setTimeout as wait } from 'node:timers/promises';
import type { HostJson } from './host-json.ts';
import type { HostLog } from './registry.ts';
import type { Accounts } from './storage.ts';

/** A blob was written, as Event Grid would say. */
export type BlobEvent = { function: string; container: string; name: string; etag: string };

export type HostContext = {
  settings: Record<string, string | undefined>;
  hostJson: HostJson;
  accounts: Accounts;
  /** Names the app in the cursors of its blob triggers. */
  hostId: string;
  log: HostLog;
  /** Shortest distance of two looks into a queue or container, in milliseconds. */
  pollMs: number;
  /** How often the event of a new blob arrives; see HostOptions. */
  deliveries: (event: BlobEvent) => number;
  /** Aborts when the host stops; work under way is finished, none is begun. */
  stopping: AbortSignal;
  /** Keeps the host from ending before this is done. */
  track<T>(work: Promise<T>): Promise<T>;
};

/** An idle trigger looks less often, down to this distance in milliseconds: an idle stack should cost next to nothing. */
const IDLE_MS_MAX = 1_000;

/** Looks again and again until the host stops. `look` says whether there was work; what it throws is logged. */
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
    await wait(idleMs, undefined, { signal: context.stopping }).catch(() => {});
    idleMs = Math.min(IDLE_MS_MAX, idleMs * 1.5);
  }
}

export function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
