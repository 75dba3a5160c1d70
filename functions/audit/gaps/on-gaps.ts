// Requests of the edge about gaps of a log: `shared/audit/gaps.ts`. Outboxes have names of tenants, so only operators see them.
import { newAcceptance } from '../../../shared/audit/gaps.ts';
import { refuse } from '../../../shared/refusal.ts';
import type { EdgeHandler } from '../../caller/from-edge.ts';
import { answer, answerNo } from '../../http/answer.ts';
import { readGaps } from '../entries/gap-rows.ts';
import { forZone } from '../erase/on-erase.ts';
import type { PrivacyContext } from '../erase/open-privacy.ts';
import { acceptGap } from './accept-gap.ts';

/** GET /api/audit/{zone}/gaps */
export const onGaps = (context: PrivacyContext | undefined): EdgeHandler =>
  forZone(context, undefined, async (_, { operate, tenant, subject }, found) => {
    if (!operate) return answerNo(refuse('scope_missing', { scope: 'operate' }));
    const noted = await context?.reads.note({ zone: found.zone, tenant, subject, action: 'gaps' });
    if (noted?.ok === false) return answerNo(noted.refusal);
    return answer(200, { data: await readGaps(found.rows, found.zone, found.now()) });
  });

/** POST /api/audit/{zone}/gaps/accept */
export const onAcceptGap = (context: PrivacyContext | undefined): EdgeHandler =>
  forZone(context, newAcceptance, async (body, { operate, tenant }, found) => {
    if (!operate) return answerNo(refuse('scope_missing', { scope: 'operate' }));
    const done = await acceptGap(found, { ...body, tenant });
    return done.ok ? answer(200, done.value) : answerNo(done.refusal);
  });
