// Decides the answer of the health route from probes of the stores. Pure.

/** Result of a probe. `full`: the store answers but refuses writes. */
export type Trial = { store: string; reached: boolean; tookMs: number; full?: boolean };

export type Health = {
  status: 200 | 503;
  body: { status: 'ok' | 'unavailable'; stores: Record<string, Omit<Trial, 'store'>> };
};

/** Healthy only when every store is reached: a host that cannot queue a job must not take uploads. */
export function decideHealth(trials: Trial[]): Health {
  const healthy = trials.length > 0 && trials.every((trial) => trial.reached);
  return {
    status: healthy ? 200 : 503,
    body: {
      status: healthy ? 'ok' : 'unavailable',
      stores: Object.fromEntries(trials.map(({ store, ...trial }) => [store, trial])),
    },
  };
}
