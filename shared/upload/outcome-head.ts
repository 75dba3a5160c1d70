// How the edge asks an agent for a transcript: a short request (`POST /v1/short`) whose record 0 is this head, JSON, and
// which has no body. The tenant is the ticket's, and the model of the ticket is the upload's. The answer is `segment`
// events and `final`, as for a recording that was recognised just now.
import { z } from 'zod';
import { readAt } from './contract.ts';
import { uploadId } from './job.ts';

export const outcomeHead = z.object({
  v: z.literal(1),
  task: z.literal('outcome'),
  upload: uploadId,
  /** Which run of the upload the transcript is of. */
  run: z.number().int().min(1),
  /** `read` of `openedTranscript`. */
  read: readAt,
});

export type OutcomeHead = z.infer<typeof outcomeHead>;
