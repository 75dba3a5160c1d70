// Lost and duplicated blob events, as the platform produces them, by a setting, so that tests cover them with
// a whole stack.
import type { BlobEvent } from './context.ts';

/**
 * `2` delivers every event twice, `0` none, and `1,0,1,2` goes round: of four events the second is lost and the fourth
 * comes twice. @throws for anything else.
 */
export function deliveriesOf(text: string | undefined): (event: BlobEvent) => number {
  if (text === undefined || text === '') return () => 1;
  const times = text.split(',').map(Number);
  if (!/^\d(,\d)*$/.test(text))
    throw new Error('AURICLE_BLOB_EVENTS is not numbers of 0 to 9 with commas between them');
  let seen = 0;
  return () => times[seen++ % times.length] ?? 1;
}
