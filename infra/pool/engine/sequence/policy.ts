import type { ModelConfig } from '../../models/config/schema.ts';
import { slotsPerInstance } from '../../models/config/sequence-rules.ts';
import type { BatchPolicy } from '../batch/policy.ts';

/**
 * Returns the batching policy of sequences. `oldest` batches dynamically over the next request of each.
 * `direct` sends at once, or waits until a share of the rows is taken; its fixed rows mean nothing to a
 * network without memory of its own, so unused rows are omitted.
 */
export function sequencePolicy(config: ModelConfig): BatchPolicy {
  const { oldest, direct } = config.sequence_batching ?? {};
  const maxBatch = Math.max(1, config.max_batch_size);
  // Without a share one row is enough, and the delay never begins.
  const enough = Math.max(1, Math.ceil((direct?.minimum_slot_utilization ?? 0) * maxBatch));
  const queue = { onTimeout: 'REJECT', timeoutUs: 0, mayShorten: false, maxQueued: slotsPerInstance(config) } as const;
  return {
    maxBatch,
    preferred: oldest
      ? [...oldest.preferred_batch_size].sort((a, b) => a - b)
      : Array.from({ length: maxBatch - enough + 1 }, (_, more) => enough + more),
    delayUs: (oldest ?? direct)?.max_queue_delay_microseconds ?? 0,
    levels: 0,
    defaultLevel: 0,
    policyOf: () => queue,
  };
}
