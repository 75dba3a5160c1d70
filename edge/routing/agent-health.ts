import type { RosterEntry } from '../../shared/pool/heartbeat.ts';
import { HEARTBEAT_GONE_MS, HEARTBEAT_UNKNOWN_MS } from '../../shared/pool/limits.ts';

/**
 * `joining`: its engine is not ready. `ready`. `unknown`: its last report says nothing about its load any more, but it
 * may still take work. `draining`: no new work. `gone`: silent for so long that it is no candidate.
 */
export const healths = ['joining', 'ready', 'unknown', 'draining', 'gone'] as const;
export type Health = (typeof healths)[number];

/**
 * Returns the health of an agent at `at`, ms since 1970 on the roster's clock, which also stamped `heard`.
 */
export function healthOf(entry: Pick<RosterEntry, 'load' | 'heard'>, at: number): Health {
  const silent = at - entry.heard;
  if (silent > HEARTBEAT_GONE_MS) return 'gone';
  if (entry.load.draining) return 'draining';
  if (!entry.load.engineReady) return 'joining';
  return silent > HEARTBEAT_UNKNOWN_MS ? 'unknown' : 'ready';
}

/** May new work go there. */
export const takesWork = (health: Health): boolean => health === 'ready' || health === 'unknown';
