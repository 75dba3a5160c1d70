import type { ModelConfig } from '../../models/config/schema.ts';
import { slotsPerInstance } from '../../models/config/sequence-rules.ts';
import type { BatchPolicy } from '../batch/policy.ts';

/**
 * How the requests of different sequences become one batch. `oldest` is a dynamic batcher over whoever is next. `direct`
 * sends what is there, or waits until a share of the rows is taken; its fixed rows have no meaning for a network that
 * remembers nothing by itself, so the rows nobody uses are left out.
 */
export function sequencePolicy(config: ModelConfig): BatchPolicy {
  const { oldest, direct } = config.sequence_batching ?? {};
  const maxBatch = Math.max(1, config.max_batch_size);
  // Without a share one is enough, and the delay never begins.
  const enough = Math.max(1, Math.ceil((direct?.minimum_slot_utilization ?? 0) * maxBatch));
  const queue = { onTimeout: 'REJECT', timeoutUs: 0, mayShorten: false, maxQueued: slotsPerInstance(config) } as const;
  return {
    maxBatch,
    preferred: oldest
      ? [...oldest.preferred_batch_size].sort((a, b) => a - b)
      : Array.from({ length: maxBatch - enough + 1 }, (_, more) => enough + more),
    delayUs: (oldest ?? direct)?.max_queue_delay_microseconds ?? 0,
    preserveOrder: oldest?.preserve_ordering ?? false,
    levels: 0,
    defaultLevel: 0,
    policyOf: () => queue,
  };
}
