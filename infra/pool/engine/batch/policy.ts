import type { Message, ModelConfig } from '../../models/config/schema.ts';
import { ENGINE_QUEUED_REQUESTS_MAX } from '../limits.ts';

/** Queue policy of one priority level. Times are microseconds; a timeout of 0 means none. */
export interface LevelPolicy {
  readonly onTimeout: 'REJECT' | 'DELAY';
  readonly timeoutUs: number;
  readonly mayShorten: boolean;
  readonly maxQueued: number;
}

/** The batching rules of a model, in the form the decision needs. */
export interface BatchPolicy {
  /** 1 for a model that takes one request at a time. */
  readonly maxBatch: number;
  readonly preferred: readonly number[];
  readonly delayUs: number;
  /** 0: the model has no priorities, and every request is on level 0. */
  readonly levels: number;
  readonly defaultLevel: number;
  policyOf(level: number): LevelPolicy;
}

function levelPolicy(policy: Message<'QueuePolicy'> | undefined): LevelPolicy {
  return {
    onTimeout: policy?.timeout_action ?? 'REJECT',
    timeoutUs: policy?.default_timeout_microseconds ?? 0,
    mayShorten: policy?.allow_timeout_override ?? false,
    maxQueued: policy?.max_queue_size || ENGINE_QUEUED_REQUESTS_MAX,
  };
}

/**
 * Returns the policy of a model. Without dynamic_batching every request runs alone, in order of arrival, from
 * a bounded queue.
 */
export function batchPolicy(config: ModelConfig): BatchPolicy {
  const batching = config.dynamic_batching;
  const fallback = levelPolicy(batching?.default_queue_policy);
  const levels = batching?.priority_levels ?? 0;
  const special = new Map(
    levels === 0
      ? []
      : Object.entries(batching?.priority_queue_policy ?? {}).map(([key, policy]) => [
          Number(key),
          levelPolicy(policy),
        ]),
  );
  return {
    maxBatch: batching ? Math.max(1, config.max_batch_size) : 1,
    preferred: [...(batching?.preferred_batch_size ?? [])].sort((a, b) => a - b),
    delayUs: batching?.max_queue_delay_microseconds ?? 0,
    levels,
    defaultLevel: levels > 0 ? (batching?.default_priority_level ?? 1) : 0,
    policyOf: (level) => special.get(level) ?? fallback,
  };
}
