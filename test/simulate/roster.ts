// The roster of each zone, and what an isolate of the edge stores of it.
import { SNAPSHOT_AGE_MS } from '../../edge/routing/snapshot.ts';
import type { RosterEntry, Snapshot } from '../../shared/pool/heartbeat.ts';
import { HEARTBEAT_MS } from '../../shared/pool/limits.ts';
import type { SimulatedAgent } from './agent.ts';
import type { Simulation } from './events.ts';
import { release } from './fleet.ts';

/** Isolates that read a roster within this time, ms, get one snapshot: equal ones need not be made again. */
const SHARED_MS = 200;

export interface RosterPlan {
  /** Time that a report takes from the agent to the roster, ms. */
  readonly lateMs: number;
  readonly canary: boolean;
  /** Changes what isolates read of an agent, for ablations. */
  readonly change: (entry: RosterEntry, at: number) => RosterEntry;
}

export interface Rosters {
  /** Returns the snapshots of all zones. */
  read(): readonly Snapshot[];
}

/** Starts the heartbeats of the agents, each at a time of its own within the second. */
export function startRosters(agents: readonly SimulatedAgent[], simulation: Simulation, plan: RosterPlan): Rosters {
  const { now, after } = simulation;
  const began = now();
  const latest = new Map<string, RosterEntry>();
  const zones = [...new Set(agents.map(({ plan: { description } }) => description.zone))];
  const names = new Set(agents.flatMap(({ plan: { description } }) => description.models.map(({ name }) => name)));
  const models = Object.fromEntries([...names].map((name) => [name, release]));
  const map = plan.canary ? { v: 1 as const, generation: 1, models } : undefined;
  let shared: readonly Snapshot[] = [];
  let sharedAt = Number.NEGATIVE_INFINITY;

  const report = (agent: SimulatedAgent, lateMs: number) => {
    const { description } = agent.plan;
    const load = agent.load();
    after(lateMs, () => latest.set(description.agent, { description, attestation: '', load, heard: now() }));
  };
  const beat = (agent: SimulatedAgent) => {
    if (agent.state === 'up' || agent.state === 'stuck') report(agent, plan.lateMs);
    after(HEARTBEAT_MS, () => beat(agent));
  };
  agents.forEach((agent, index) => {
    report(agent, 0);
    after((HEARTBEAT_MS * index) / agents.length, () => beat(agent));
  });

  return {
    read() {
      if (now() - sharedAt < SHARED_MS) return shared;
      sharedAt = now();
      const entries = [...latest.values()].map((entry) => plan.change(entry, now()));
      shared = zones.map((zone) => ({
        zone,
        at: now(),
        began,
        entries: entries.filter(({ description }) => description.zone === zone),
        ...(map && { release: map }),
      }));
      return shared;
    },
  };
}

/** Returns a reader of snapshots that are at most `SNAPSHOT_AGE_MS` old, as each isolate stores them. */
export function createReader(rosters: Rosters, now: () => number): () => readonly Snapshot[] {
  let stored: readonly Snapshot[] = [];
  let got = Number.NEGATIVE_INFINITY;
  return () => {
    if (now() - got >= SNAPSHOT_AGE_MS) {
      stored = rosters.read();
      got = now();
    }
    return stored;
  };
}
