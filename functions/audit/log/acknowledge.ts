// Positions of an outbox in the log.
import { stateName } from './log-names.ts';
import { counterOf, type LogState, readState } from './log-state.ts';
import type { LogStore } from './log-store.ts';

/** The newest log of a region, as it is committed; `undefined` before the first. */
export async function newestState(store: LogStore, zone: string): Promise<LogState | undefined> {
  const stored = await store.read('state', stateName(zone));
  return stored && readState(stored.bytes);
}

/** The number of the outbox's last event that is committed: its record is written, so it cannot be lost any more. */
export const upToOf = (state: LogState | undefined, producer: string, epoch: string): number =>
  state?.upTo[counterOf(producer, epoch)] ?? 0;
