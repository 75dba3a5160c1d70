import { limits } from '../../shared/limits.ts';
import type { Snapshot } from '../../shared/pool/heartbeat.ts';

/**
 * Reports whether the rosters of all `zones` list every agent that is connected: they answered lately, and have run for
 * long enough to be called by agents that lost them. Only then "no agent can" is more than "none is known yet".
 */
export function agentsHaveReconnected(zones: readonly string[], snapshots: readonly Snapshot[], now: number): boolean {
  return zones.every((zone) => {
    const { at = 0, began = 0 } = snapshots.find((snapshot) => snapshot.zone === zone) ?? {};
    return now - at <= limits.heartbeatUnknownMs.value && at - began >= limits.rosterGatherMs.value;
  });
}
