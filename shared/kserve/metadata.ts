import { z } from 'zod';

export const serverMetadata = z.object({
  name: z.string(),
  version: z.string(),
  extensions: z.array(z.string()),
});
export type ServerMetadata = z.infer<typeof serverMetadata>;

/** A dimension of -1 is free. With batching the first dimension of every tensor is the batch. */
const tensorMetadata = z.object({ name: z.string(), datatype: z.string(), shape: z.array(z.number().int()) });

export const modelMetadata = z.object({
  name: z.string(),
  versions: z.array(z.string()).optional(),
  platform: z.string(),
  inputs: z.array(tensorMetadata),
  outputs: z.array(tensorMetadata),
});
export type ModelMetadata = z.infer<typeof modelMetadata>;
