// Follows the published logs: shows new checkpoints to witnesses and indexes new entries.
import { failedIn, type LogContext, reasonOf } from './context/log-context.ts';
import { followLog } from './entries/follow-log.ts';
import type { PrivacyContext } from './erase/open-privacy.ts';
import type { NotifyingStore } from './log/notifying-store.ts';
import { openRounds } from './log/rounds.ts';
import { Witnessing } from './witness/on-witness.ts';

/** Longest pause of an idle witness or index round; a commit of its own process wakes it. */
const FOLLOW_IDLE_MS = 10_000;

type Desk = LogContext & { readonly store: NotifyingStore };

/** All there is to know of a log that grew is in its state. */
const following = ({ now, store }: Desk) => ({
  longestMs: FOLLOW_IDLE_MS,
  now,
  changes: (zone: string) => store.changes('state', zone),
});

export function openWitnessing(desk: Desk): () => Promise<void> {
  const witnessing = new Witnessing(desk);
  return openRounds({
    ...following(desk),
    zones: desk.zones,
    work: (zone) => witnessing.show(zone),
    failed: (zone, error) => desk.log({ what: 'unwitnessed', zone, detail: reasonOf(error) }),
  });
}

export const openIndexing = (desk: Desk, { zone: deskOf }: Pick<PrivacyContext, 'zone'>): (() => Promise<void>) =>
  openRounds({
    ...following(desk),
    zones: desk.zones,
    work: async (zone) => {
      const found = deskOf(zone);
      return found !== undefined && (await followLog(found)) > 0;
    },
    failed: (zone, error) => failedIn(desk.log, zone)(error),
  });
