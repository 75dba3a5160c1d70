// Request of the edge to an agent for a spoken document: a short request (`POST /v1/short`) without a body,
// whose record 0 is this head, JSON. The tenant is the ticket's. The answer is as that of a call
// (kserve/call.ts): `ready`, `answer`, the body, `final`.
import { z } from 'zod';
import { workId } from './job.ts';
import { readAt } from './upload-contract.ts';

const documentParts = ['audio', 'manifest'] as const;

export const documentHead = z.object({
  v: z.literal(1),
  task: z.literal('document'),
  document: workId,
  run: z.number().int().min(1),
  /** Name of the file below the run: `transcript`, or with the number of a change behind it. */
  name: z.string().regex(/^transcript(-[1-9]\d{0,5})?$/),
  part: z.enum(documentParts),
  read: readAt,
});
export type DocumentHead = z.infer<typeof documentHead>;
