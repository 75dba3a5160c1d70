import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { FetchRefusal } from '../store/contract.ts';
import type { Move } from '../tier/decide.ts';
import type { Held } from '../tier/state.ts';

/** Bytes in a tier as the policy counts them, and their bound. */
export interface TierLevel {
  readonly tier: Held;
  readonly bytes: number;
  readonly limit: number;
}

/** Phase of bringing a revision from the model store to its first inference. */
type LoadPhase = 'download' | 'copy' | 'engine' | 'warm_up';

/** Metrics of tiers and of loads (A11, A16, R14). Labels are tiers, phases and reasons only. */
export function createTierMetrics(registry: Registry, levels: () => readonly TierLevel[]) {
  const registers = [registry];
  const gauge = (name: string, help: string, pick: (level: TierLevel) => number) =>
    new Gauge({
      ...{ name, help, labelNames: ['tier'], registers },
      collect() {
        for (const level of levels()) this.set({ tier: level.tier }, pick(level));
      },
    });
  gauge('auricle_agent_tier_bytes', 'Bytes of revisions in a tier', ({ bytes }) => bytes);
  gauge('auricle_agent_tier_limit_bytes', 'Bound of the bytes in a tier', ({ limit }) => limit);
  const moves = new Counter({
    name: 'auricle_agent_tier_moves_total',
    help: 'Loads into a tier and drops from it, by outcome: ok or failed',
    labelNames: ['tier', 'act', 'outcome'],
    registers,
  });
  const phases = new Histogram({
    name: 'auricle_agent_model_load_seconds',
    help: 'Time of a load by phase: download, copy, engine, warm_up',
    labelNames: ['phase'],
    buckets: [0.01, 0.05, 0.2, 1, 5, 20, 60, 300],
    registers,
  });
  const waits = new Histogram({
    name: 'auricle_agent_model_wait_seconds',
    help: 'Time that a request waited for the load of its revision, by outcome: loaded or refused',
    labelNames: ['outcome'],
    buckets: [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60],
    registers,
  });
  const downloaded = new Counter({
    name: 'auricle_agent_model_download_bytes_total',
    help: 'Bytes of model files received from the model store or a mounted folder',
    registers,
  });
  const failures = new Counter({
    name: 'auricle_agent_model_download_failures_total',
    help: 'Model files that could not be fetched, by reason',
    labelNames: ['reason'],
    registers,
  });
  return {
    moved: ({ tier, act }: Pick<Move, 'tier' | 'act'>, outcome: 'ok' | 'failed') => moves.inc({ tier, act, outcome }),
    phase: (phase: LoadPhase, milliseconds: number) => phases.observe({ phase }, milliseconds / 1_000),
    waited: (outcome: 'loaded' | 'refused', milliseconds: number) => waits.observe({ outcome }, milliseconds / 1_000),
    received: (bytes: number) => downloaded.inc(bytes),
    notFetched: (reason: FetchRefusal['reason']) => failures.inc({ reason }),
  };
}

export type TierMetrics = ReturnType<typeof createTierMetrics>;
