// The answer to a search of the audit log. `GET …/log/{zone}/{year}/receipt/{index}` proves that an entry is in the log.
import { z } from 'zod';
import { zoneName } from '../names.ts';

const searchHit = z.object({
  year: z.number().int().describe('Year of the log'),
  index: z.number().int(),
  entry: z.string().describe('The entry as the log has it'),
  disclosed: z.array(z.string()).optional().describe('With `disclose`: hidden values of the entry (RFC 9901)'),
  erased: z.literal(true).optional().describe('With `disclose`: the keys of its hidden values are destroyed'),
});
export type SearchHit = z.infer<typeof searchHit>;

const position = z.object({ year: z.number().int(), index: z.number().int() });

export const foundEntries = z.object({
  zone: zoneName,
  hits: z.array(searchHit),
  next: z.string().optional().describe('Value of `after` for the next page'),
  indexed: position.optional().describe('Entries from here on are not in the index yet'),
});
export type FoundEntries = z.infer<typeof foundEntries>;
