// Who goes after the logs: the witnesses are shown what is new, the log of checkpoints and the index take it in.
import { HEADS } from '../../shared/audit/head.ts';
import { limits } from '../../shared/limits.ts';
import type { PrivacyDesk } from './erase/erase-desks.ts';
import { failedIn, type LogDesk, logsOf, reasonOf } from './log/log-desk.ts';
import type { Noticing } from './log/noticing-store.ts';
import { openRounds } from './rounds.ts';
import { followLog } from './search/search-follow.ts';
import { Witnessing } from './witness/on-witness.ts';
import { recordHead } from './witness/record-heads.ts';

type Desk = LogDesk & { readonly store: Noticing };

/** All there is to know of a log that grew is in its state. */
const following = ({ now, store }: Desk) => ({
  longestMs: limits.auditFollowIdleMs.value,
  now,
  changes: (zone: string) => store.changes('state', zone),
});

export function openWitnessing(desk: Desk): () => Promise<void> {
  const witnessing = new Witnessing(desk);
  return openRounds({
    ...following(desk),
    zones: logsOf(desk),
    work: (zone) => witnessing.show(zone),
    failed: (zone, error) => desk.log({ what: 'unwitnessed', zone, detail: reasonOf(error) }),
  });
}

export const openHeads = (desk: Desk): (() => Promise<void>) =>
  openRounds({
    ...following(desk),
    longestMs: limits.auditHeadMs.value,
    zones: desk.zones,
    work: async (zone) => (await recordHead(desk, zone)).kind === 'record',
    failed: (zone, error) => desk.log({ what: 'failed', zone: HEADS, detail: `${zone}: ${reasonOf(error)}` }),
  });

export const openIndexing = (desk: Desk, { zone: deskOf }: Pick<PrivacyDesk, 'zone'>): (() => Promise<void>) =>
  openRounds({
    ...following(desk),
    zones: desk.zones,
    work: async (zone) => {
      const found = deskOf(zone);
      return found !== undefined && (await followLog(found)) > 0;
    },
    failed: (zone, error) => failedIn(desk.log, zone)(error),
  });
