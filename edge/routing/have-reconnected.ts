import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { HEARTBEAT_UNKNOWN_MS } from '../../shared/pool/limits.ts';

/** Age below which a registry may still lack agents: they reconnect within RECONNECT_MAX_MS. */
export const ROSTER_GATHER_MS = 12_000;

/**
 * Reports whether the rosters of all `zones` list every agent that is connected: they answered lately, and have run for
 * long enough to be called by agents that lost them. Only then "no agent can" is more than "none is known yet".
 */
export function agentsHaveReconnected(zones: readonly string[], snapshots: readonly Snapshot[], now: number): boolean {
  return zones.every((zone) => {
    const { at = 0, began = 0 } = snapshots.find((snapshot) => snapshot.zone === zone) ?? {};
    return now - at <= HEARTBEAT_UNKNOWN_MS && at - began >= ROSTER_GATHER_MS;
  });
}
