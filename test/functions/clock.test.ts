// A wrong clock is named where signed times show it.
import { describe, expect, it } from 'vitest';
import { verifyProof } from '../../functions/caller/agent-caller.ts';
import { verifyEdge } from '../../functions/caller/edge-caller.ts';
import { makeCallers } from './callers.ts';

const callers = await makeCallers();
const TEN_MINUTES = 600_000;

describe('C9 T4: clocks that differ by ten minutes', () => {
  it.each([
    [TEN_MINUTES, /^the functions' clock is (599|600|601) s ahead$/],
    [-TEN_MINUTES, /^the functions' clock is (599|600|601) s behind$/],
  ])('functions %i ms off name their clock in the refusal of the edge', async (offset, rule) => {
    const token = `Bearer ${await callers.edgeToken('acme')}`;
    expect(await verifyEdge(token, callers.settings, Date.now() + offset)).toMatchObject({
      refusal: { reason: 'token_expired', params: { rule: expect.stringMatching(rule) } },
    });
    expect(await verifyEdge(token, callers.settings, Date.now())).toMatchObject({ ok: true });
  });

  it('an agent ten minutes ahead is named in the refusal of its proof', async () => {
    const proof = await callers.proofOf('job', 'agent-1', 'agent-1', Date.now() + TEN_MINUTES);
    expect(await verifyProof({ proof, job: 'job' }, callers.settings, Date.now())).toMatchObject({
      refusal: {
        reason: 'token_expired',
        params: { rule: expect.stringMatching(/^the agent's clock is \d+ s ahead$/) },
      },
    });
  });
});
