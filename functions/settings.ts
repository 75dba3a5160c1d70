import { z } from 'zod';

/** Everything the functions are told from outside. The only reader of the environment. */
const settings = z.object({
  /** Connection string of the storage account that holds uploads, outcomes and the record. */
  STORAGE_CONNECTION: z.string().min(1),
  /** Where SQS answers. Left out in the cloud, where the region alone says it. */
  SQS_ENDPOINT: z.url().optional(),
  /** Region of the job queue. */
  SQS_REGION: z.string().min(1),
  /** Name of the queue that agents take jobs from, and of the one for jobs that nobody could finish. */
  JOBS_QUEUE: z.string().min(1).default('jobs'),
  JOBS_DEAD_QUEUE: z.string().min(1).default('jobs-dlq'),
});

export type Settings = z.infer<typeof settings>;

export function readSettings(environment: Record<string, string | undefined>): Settings {
  const parsed = settings.safeParse(environment);
  if (parsed.success) return parsed.data;
  // Names only: a value that does not fit may still be a secret.
  const names = parsed.error.issues.map((issue) => issue.path.join('.')).join(', ');
  throw new Error(`missing or unusable settings: ${names}`);
}

export const currentSettings = (): Settings => readSettings(process.env);
