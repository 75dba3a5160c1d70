import { describe, expect, it } from 'vitest';
import { freshAllowance, settle, take } from '../../../edge/ledger/allowance.ts';
import { quotaOf } from '../../../edge/ledger/quota.ts';
import { bookShare, quotaOfShare, takeShare } from '../../../edge/ledger/share.ts';

const NOW = 1_700_000_000_000;
const work = { tenant: 'acme', action: 'transcribe' };
const share = { id: 'grant', allowance: { requestsAtOnce: 1, requestsPerMinute: 3 }, until: NOW + 60_000 };
const ask = (id: string) => ({ id, work, allowance: {}, share });

describe('C4 the allowance of one token', () => {
  it('counts the places that the token holds, and those only', () => {
    const others = take(freshAllowance, { id: 'other', work, allowance: {} }, NOW);
    if (!others.ok) throw new Error('refused');
    const first = takeShare(undefined, others.value, ask('a'), NOW);
    const held = take(others.value, ask('a'), NOW);
    if (!first.ok || !held.ok) throw new Error('refused');
    expect(takeShare(first.value, held.value, ask('b'), NOW)).toMatchObject({
      ok: false,
      refusal: { reason: 'allowance_concurrent', params: { limit: 1 } },
    });
    expect(takeShare(first.value, settle(held.value, 'a', 2, NOW), ask('b'), NOW).ok).toBe(true);
  });

  it('closes with its seconds, and opens with the next day', () => {
    const bounded = { ...share, allowance: { audioSecondsPerDay: 5 } };
    const used = bookShare({ ...freshAllowance }, 5, NOW);
    const asked = (now: number) => takeShare(used, freshAllowance, { ...ask('a'), share: bounded }, now);
    expect(asked(NOW)).toMatchObject({ refusal: { reason: 'allowance_seconds', params: { limit: 5 } } });
    expect(asked(NOW + 86_400_000).ok).toBe(true);
  });

  it('shows of each bound the tighter one', () => {
    const tenant = quotaOf({ ...freshAllowance, seconds: 0 }, { requestsPerMinute: 10, audioSecondsPerDay: 2 }, NOW);
    expect(quotaOfShare(tenant, undefined, share, NOW)).toMatchObject({
      requests: { limit: 3, remaining: 3 },
      audioSeconds: { limit: 2, remaining: 2 },
    });
  });
});
