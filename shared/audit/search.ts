// What a search of the audit log answers. Nothing of it need be believed: each hit carries what shows that it is in the log.
import { z } from 'zod';
import { zoneName } from '../upload/job.ts';

const searchHit = z.object({
  year: z.number().int().describe('Of which year’s log'),
  index: z.number().int(),
  leafHash: z.string().describe('Base64'),
  entry: z.string().describe('As it stands in the log'),
  receipt: z.string().describe('C2SP tlog-proof: that the entry is in the log, under a signed checkpoint'),
  disclosed: z.array(z.string()).optional().describe('With `disclose`: what the entry hides (RFC 9901)'),
  erased: z.literal(true).optional().describe('With `disclose`: the keys of what it hides are destroyed'),
  disclosure: z.string().optional().describe('Of the subject, when that was searched for (RFC 9901)'),
});
export type SearchHit = z.infer<typeof searchHit>;

const position = z.object({ year: z.number().int(), index: z.number().int() });

export const foundEntries = z.object({
  zone: zoneName,
  hits: z.array(searchHit),
  next: z.string().optional().describe('What to ask for as `after` to go on'),
  indexed: position.optional().describe('Entries from here on are not in the index yet'),
});
export type FoundEntries = z.infer<typeof foundEntries>;
