// Request of the edge to an agent for a transcript: a short request (`POST /v1/short`) without a body, whose
// record 0 is this head, JSON. The tenant is the ticket's, and the model of the ticket is the upload's. The
// answer is `segment` events and `final`, as for a fresh recognition.
import { z } from 'zod';
import { uploadId } from './job.ts';
import { readAt } from './upload-contract.ts';

export const outcomeHead = z.object({
  v: z.literal(1),
  task: z.literal('outcome'),
  upload: uploadId,
  /** Run of the upload that made the transcript. */
  run: z.number().int().min(1),
  /** `read` of `openedTranscript`. */
  read: readAt,
});

export type OutcomeHead = z.infer<typeof outcomeHead>;
