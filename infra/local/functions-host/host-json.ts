// Settings of host.json that the local host honours, with the defaults of the platform.
import { readFileSync } from 'node:fs';
import { z } from 'zod';

const span = z
  .string()
  .regex(/^\d{2}:\d{2}:\d{2}$/)
  .transform((text) => {
    const [hours = 0, minutes = 0, seconds = 0] = text.split(':').map(Number);
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000;
  });

const hostJson = z.object({
  version: z.literal('2.0'),
  extensions: z
    .object({
      http: z.object({ routePrefix: z.string().default('api') }).prefault({}),
      queues: z
        .object({
          batchSize: z.number().int().min(1).max(32).default(16),
          maxDequeueCount: z.number().int().min(1).default(5),
          /** Time for which a message stays invisible after its function failed. */
          visibilityTimeout: span.prefault('00:00:00'),
          messageEncoding: z.enum(['base64', 'none']).default('base64'),
        })
        .prefault({}),
      blobs: z
        .object({
          maxDegreeOfParallelism: z.number().int().min(1).default(8),
          poisonBlobThreshold: z.number().int().min(1).default(5),
        })
        .prefault({}),
    })
    .prefault({}),
});

export type HostJson = z.infer<typeof hostJson>;

export function readHostJson(file: string): HostJson {
  return hostJson.parse(JSON.parse(readFileSync(file, 'utf8')));
}
