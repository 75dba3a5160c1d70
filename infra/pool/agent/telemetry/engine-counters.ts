import { Counter, type Registry } from 'prom-client';

/**
 * Counters of one model. Triton's restart when it loads the model, the embedded engine's when it starts.
 */
export interface EngineStatistics {
  readonly requests: number;
  readonly computeNs: number;
  /** 0 for an ensemble: its steps wait. */
  readonly queueNs: number;
}

/** Counters that the engine reports: none of waiting for an ensemble, only waiting for a step of ensembles. */
export type EngineCounts = Partial<EngineStatistics>;

/** Returns the growth of a counter since `before`; Triton's restart with every load of a model. */
export const grownBy = (before: number, now: number): number => (now < before ? now : now - before);

const table = {
  auricle_agent_engine_requests_total: ['Inferences the engine has answered', (counts) => counts.requests],
  auricle_agent_engine_queue_seconds_total: [
    'Time requests waited inside the engine, by the model that kept them waiting: a step of an ensemble',
    ({ queueNs }) => queueNs && queueNs / 1e9,
  ],
  auricle_agent_engine_compute_seconds_total: [
    'Time the engine computed, all steps of an ensemble together',
    ({ computeNs }) => computeNs && computeNs / 1e9,
  ],
} satisfies Record<string, [help: string, pick: (counts: EngineCounts) => number | undefined]>;

/**
 * Counters of the engine as counters of the agent, which continue when the engine resets. Counts between the last
 * scrape and a reload are lost.
 */
export function registerEngineCounters(
  registry: Registry,
  read: () => Promise<ReadonlyMap<string, EngineCounts>>,
): void {
  // Shared by who scrapes at the same time: of two readings that overtake each other one would look like a new beginning.
  let reading: ReturnType<typeof read> | undefined;
  const readOnce = () => {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  };
  for (const [name, [help, pick]] of Object.entries(table)) {
    const seen = new Map<string, number>();
    new Counter({
      name,
      help,
      labelNames: ['model'],
      registers: [registry],
      async collect() {
        for (const [model, counts] of await readOnce()) {
          const now = pick(counts);
          if (now === undefined) continue;
          this.inc({ model }, grownBy(seen.get(model) ?? 0, now));
          seen.set(model, now);
        }
      },
    });
  }
}
