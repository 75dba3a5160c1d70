// Requests of the edge to the index: `shared/audit/privacy.ts`.
import { newSearch } from '../../../shared/audit/privacy.ts';
import type { EdgeHandler } from '../../caller/from-edge.ts';
import { answer, answerNo } from '../../http/answer.ts';
import { TenantLimiter } from '../../http/limiter.ts';
import { forZone } from '../erase/on-erase.ts';
import type { PrivacyContext } from '../erase/open-privacy.ts';
import { searchLog } from './search.ts';

/**
 * Concurrent searches of one process: each reads tiles for as many receipts as it has hits, in parallel with
 * writing the logs.
 */
const SEARCHES_MAX = 8;
/**
 * Concurrent searches of one tenant: a quarter of SEARCHES_MAX, so that a looping client leaves capacity for
 * three others.
 */
const SEARCHES_PER_TENANT_MAX = 2;

/** POST /api/audit/{zone}/search: the read is on record before the answer. */
export function onSearch(context: PrivacyContext | undefined): EdgeHandler {
  const limiter = new TenantLimiter(SEARCHES_MAX, SEARCHES_PER_TENANT_MAX);
  return forZone(context, newSearch, (query, { tenant, subject }, found) =>
    limiter.run(tenant, async () => {
      const noted = await context?.reads.note({
        zone: found.zone,
        tenant,
        subject,
        action: query.disclose ? 'disclose' : 'search',
      });
      if (noted && !noted.ok) return answerNo(noted.refusal);
      return answer(200, await searchLog(found, { ...query, tenant }));
    }),
  );
}
