import { z } from 'zod';

/** Count and total time. Counters only grow: compare two samples. */
const duration = z.object({ count: z.number(), ns: z.number() });
export type Duration = z.infer<typeof duration>;

const inferenceStatistics = z.object({
  success: duration,
  fail: duration,
  queue: duration,
  compute_input: duration,
  compute_infer: duration,
  compute_output: duration,
  cache_hit: duration.optional(),
  cache_miss: duration.optional(),
});

const batchStatistics = z.object({
  batch_size: z.number(),
  compute_input: duration,
  compute_infer: duration,
  compute_output: duration,
});

const modelStatistics = z.object({
  name: z.string(),
  version: z.string(),
  last_inference: z.number(),
  inference_count: z.number(),
  execution_count: z.number(),
  inference_stats: inferenceStatistics,
  batch_stats: z.array(batchStatistics),
});
export type ModelStatistics = z.infer<typeof modelStatistics>;

export const statisticsMessage = z.object({ model_stats: z.array(modelStatistics) });
