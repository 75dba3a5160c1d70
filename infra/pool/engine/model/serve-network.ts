import type { ModelConfig } from '../../models/config/schema.ts';
import { Batcher } from '../batch/batcher.ts';
import type { Clock } from '../clock.ts';
import { refuse } from '../refuse.ts';
import type { Instance } from '../run/instance.ts';
import { type Call, checkRequest } from './check-request.ts';
import type { Answer, Served } from './served.ts';
import type { VersionStatistics } from './statistics.ts';

/** A network with its instances, as something that takes requests. */
export function serveNetwork(
  config: ModelConfig,
  version: number,
  instances: readonly Instance[],
  statistics: VersionStatistics,
  clock: Clock,
): Served {
  const batcher = new Batcher(config, instances, statistics, clock);
  return {
    name: config.name,
    version,
    config,
    statistics,
    get pending() {
      return batcher.pending;
    },
    async infer(call: Call): Promise<Answer> {
      const began = clock.now();
      const elapsedNs = () => (clock.now() - began) * 1000;
      const checked = checkRequest(config, call);
      if (!checked.ok) {
        statistics.failed('OTHER', elapsedNs());
        return refuse('INVALID_ARG', checked.refusal.reason);
      }
      const { inputs, priority, timeoutUs, signal } = call;
      const outcome = await batcher.enqueue({ ...checked.value, inputs, priority, timeoutUs, signal });
      if (outcome.ok) statistics.succeeded(checked.value.size, elapsedNs(), outcome.value.durations);
      else statistics.failed(outcome.refusal.failure, elapsedNs());
      return outcome;
    },
    close: () => batcher.close(),
  };
}
