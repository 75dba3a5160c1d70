// Follows the published logs: shows new checkpoints to witnesses and indexes new entries.
import { failedIn, type LogContext, reasonOf } from './context/log-context.ts';
import { followLog } from './entries/follow-log.ts';
import type { PrivacyContext } from './erase/open-privacy.ts';
import type { NotifyingStore } from './log/notifying-store.ts';
import { openRounds } from './log/rounds.ts';
import { Witnessing } from './witness/on-witness.ts';

/** Longest pause of an idle witness or index round; a commit of its own process wakes it. */
const FOLLOW_IDLE_MS = 10_000;

type FollowContext = LogContext & { readonly store: NotifyingStore };

/** All there is to know of a log that grew is in its state. */
const following = ({ now, store }: FollowContext) => ({
  longestMs: FOLLOW_IDLE_MS,
  now,
  changes: (zone: string) => store.changes('state', zone),
});

export function openWitnessing(context: FollowContext): () => Promise<void> {
  const witnessing = new Witnessing(context);
  return openRounds({
    ...following(context),
    zones: context.zones,
    work: (zone) => witnessing.show(zone),
    failed: (zone, error) => context.log({ what: 'unwitnessed', zone, detail: reasonOf(error) }),
  });
}

export const openIndexing = (
  context: FollowContext,
  { zone: contextOf }: Pick<PrivacyContext, 'zone'>,
): (() => Promise<void>) =>
  openRounds({
    ...following(context),
    zones: context.zones,
    work: async (zone) => {
      const found = contextOf(zone);
      return found !== undefined && (await followLog(found)) > 0;
    },
    failed: (zone, error) => failedIn(context.log, zone)(error),
  });
