import { limits } from '../../shared/limits.ts';
import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { late, type Runtime, within } from '../clock.ts';
import type { Bindings } from '../settings.ts';

interface CachedSnapshot {
  readonly snapshot: Snapshot;
  /** Arrival, ms since 1970 by this isolate's clock; ages are never computed across clocks. */
  readonly got: number;
}

/** Last snapshot of each zone, and the start of the request that fetches a newer one. Plain data only. */
const stored = new Map<string, CachedSnapshot>();
const asking = new Map<string, number>();

/**
 * Returns the snapshots of the zones, at most `limits.snapshotAgeMs` old while their rosters answer and at
 * most `limits.snapshotStaleMs` while they do not. A zone without one is left out.
 */
export async function readSnapshots(
  zones: readonly string[],
  roster: Bindings['ROSTER'],
  runtime: Runtime,
): Promise<Snapshot[]> {
  const due = zones.filter((zone) => isDue(zone, runtime.now()));
  await Promise.all(due.map((zone) => refresh(zone, roster, runtime)));
  return storedOf(zones, runtime.now());
}

const storedOf = (zones: readonly string[], now: number): Snapshot[] =>
  zones.flatMap((zone) => {
    const known = stored.get(zone);
    return known && now - known.got <= limits.snapshotStaleMs.value ? [known.snapshot] : [];
  });

/**
 * Reports whether a snapshot is old and no other request of this isolate fetches it. A snapshot too old for
 * use is fetched regardless: after a pause, the first requests come together.
 */
function isDue(zone: string, now: number): boolean {
  const known = stored.get(zone);
  const age = known ? now - known.got : Number.POSITIVE_INFINITY;
  if (age < limits.snapshotAgeMs.value) return false;
  const since = asking.get(zone);
  return age > limits.snapshotStaleMs.value || since === undefined || now - since > limits.snapshotWaitMs.value;
}

async function refresh(zone: string, roster: Bindings['ROSTER'], runtime: Runtime): Promise<void> {
  asking.set(zone, runtime.now());
  try {
    const snapshot = await within(roster.getByName(zone).snapshot(), limits.snapshotWaitMs.value, runtime);
    if (snapshot !== late) stored.set(zone, { snapshot, got: runtime.now() });
  } catch {
    // The roster is unreachable; the cached snapshot counts until it is too old.
  } finally {
    asking.delete(zone);
  }
}
