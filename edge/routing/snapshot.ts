import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { SNAPSHOT_STALE_MS } from '../../shared/pool/limits.ts';
import { late, type Runtime, within } from '../clock.ts';
import type { Bindings } from '../settings.ts';

/** Age at which an isolate refreshes its registry snapshot. */
export const SNAPSHOT_AGE_MS = 1_000;
/** Longest wait for a registry; after it the cached snapshot serves. */
export const SNAPSHOT_WAIT_MS = 500;

interface CachedSnapshot {
  readonly snapshot: Snapshot;
  /** Arrival, ms since 1970 by this isolate's clock; ages are never computed across clocks. */
  readonly got: number;
  /** Number of the request that fetched it: an older request that answers later replaces nothing. */
  readonly order: number;
}

/** Last snapshot of each zone, and the start of the request that fetches a newer one. Plain data only. */
const stored = new Map<string, CachedSnapshot>();
const fetching = new Map<string, number>();
let requests = 0;

/**
 * Returns the snapshots of the zones, at most `SNAPSHOT_AGE_MS` old while their rosters answer and at
 * most `SNAPSHOT_STALE_MS` while they do not. A zone without one is left out.
 */
export async function readSnapshots(
  zones: readonly string[],
  roster: Bindings['ROSTER'],
  runtime: Runtime,
): Promise<Snapshot[]> {
  const due = zones.filter((zone) => isDue(zone, runtime.now()));
  await refreshSnapshots(due, roster, runtime);
  return storedOf(zones, runtime.now());
}

/** Fetches the snapshots of the zones whatever the age of the stored ones: the isolate has just changed them. */
export async function refreshSnapshots(
  zones: readonly string[],
  roster: Bindings['ROSTER'],
  runtime: Runtime,
): Promise<void> {
  await Promise.all(zones.map((zone) => refresh(zone, roster, runtime)));
}

const storedOf = (zones: readonly string[], now: number): Snapshot[] =>
  zones.flatMap((zone) => {
    const known = stored.get(zone);
    return known && now - known.got <= SNAPSHOT_STALE_MS ? [known.snapshot] : [];
  });

/**
 * Reports whether a snapshot is old and no other request of this isolate fetches it. A snapshot too old for
 * use is fetched regardless: after a pause, the first requests come together.
 */
function isDue(zone: string, now: number): boolean {
  const known = stored.get(zone);
  const age = known ? now - known.got : Number.POSITIVE_INFINITY;
  if (age < SNAPSHOT_AGE_MS) return false;
  const since = fetching.get(zone);
  return age > SNAPSHOT_STALE_MS || since === undefined || now - since > SNAPSHOT_WAIT_MS;
}

async function refresh(zone: string, roster: Bindings['ROSTER'], runtime: Runtime): Promise<void> {
  fetching.set(zone, runtime.now());
  requests += 1;
  const order = requests;
  try {
    const snapshot = await within(roster.getByName(zone).snapshot(), SNAPSHOT_WAIT_MS, runtime);
    if (snapshot === late || order < (stored.get(zone)?.order ?? 0)) return;
    stored.set(zone, { snapshot, got: runtime.now(), order });
  } catch {
    // The roster is unreachable; the cached snapshot counts until it is too old.
  } finally {
    fetching.delete(zone);
  }
}
