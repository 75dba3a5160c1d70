import { z } from 'zod';

/** The extension of a server that tries a failed load again by itself. */
export const LOAD_RETRY = 'model_repository(load_retry)';

const modelStates = ['UNKNOWN', 'READY', 'UNAVAILABLE', 'LOADING', 'UNLOADING'] as const;
export type ModelState = (typeof modelStates)[number];

/** A model that was never loaded is listed by its name alone. */
export const indexEntry = z.object({
  name: z.string(),
  version: z.string().optional(),
  state: z.enum(modelStates).optional(),
  reason: z.string().optional(),
});
export type IndexEntry = z.infer<typeof indexEntry>;

export const indexRequest = z.object({ ready: z.boolean().optional() });

/** Parameters replace the configuration (`config`) or files (`file:<path>`) of a model. */
export const loadRequest = z.object({
  parameters: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
});

export const unloadRequest = z.object({
  parameters: z.object({ unload_dependents: z.boolean().optional() }).strict().optional(),
});
