// What the edge asks of the index over HTTP: `shared/audit/privacy.ts`.
import { newSearch } from '../../../shared/audit/privacy.ts';
import { limits } from '../../../shared/limits.ts';
import { refuse } from '../../../shared/refusal.ts';
import { answer, answerNo } from '../../answer.ts';
import type { Question } from '../../caller/from-edge.ts';
import type { PrivacyDesk } from '../erase/erase-desks.ts';
import { asked } from '../erase/on-erase.ts';
import { Places } from '../places.ts';
import { searchLog } from './search.ts';
import { rebuildIndex } from './search-follow.ts';

/** POST /api/audit/{zone}/search: on record before it is answered. */
export function onSearch(desk: PrivacyDesk | undefined): Question {
  const places = new Places(limits.auditSearchesAtOnce.value, limits.auditSearchesPerTenant.value);
  return asked(desk, newSearch, (query, { tenant, subject }, found) =>
    places.hold(tenant, async () => {
      const told = await desk?.reads.note({
        zone: found.zone,
        tenant,
        subject,
        action: query.disclose ? 'disclose' : 'search',
      });
      if (told && !told.ok) return answerNo(told.refusal);
      return answer(200, await searchLog(found, { ...query, tenant }));
    }),
  );
}

/** POST /api/audit/{zone}/index: builds it again, of all tenants, and is on record before it does. */
export const onRebuild = (desk: PrivacyDesk | undefined): Question =>
  asked(desk, undefined, async (_, { operate, tenant }, found) => {
    if (!operate) return answerNo(refuse('scope_missing', { scope: 'operate' }));
    const { zone } = found;
    const told = await found.report({ type: 'operator.act', action: 'audit.index', zone, tenant });
    if (!told.ok) return answerNo(told.refusal);
    return answer(200, { from: await rebuildIndex(found) });
  });
