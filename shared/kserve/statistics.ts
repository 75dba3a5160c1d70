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

/** Bytes that a loaded model takes. `measured`, an extension: derived from files and threads, not from an allocator. */
const memoryUsage = z.object({
  type: z.string(),
  /** Number of the device of this type. */
  id: z.coerce.number(),
  byte_size: z.coerce.number().nonnegative(),
  source: z.literal('measured').optional(),
});
export type MemoryUsage = z.infer<typeof memoryUsage>;

const modelStatistics = z.object({
  name: z.string(),
  version: z.string(),
  last_inference: z.number(),
  inference_count: z.number(),
  execution_count: z.number(),
  inference_stats: inferenceStatistics,
  batch_stats: z.array(batchStatistics),
  memory_usage: z.array(memoryUsage).optional(),
});
export type ModelStatistics = z.infer<typeof modelStatistics>;

export const statisticsMessage = z.object({ model_stats: z.array(modelStatistics) });

/** Memory in the statistics of loaded versions: `memory_usage` of Triton's statistics extension. */
export const memoryMessage = z.object({
  model_stats: z.array(modelStatistics.pick({ memory_usage: true })),
});
