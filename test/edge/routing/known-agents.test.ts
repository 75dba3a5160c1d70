// Agents that the roster remembers after they went, and the last messages of those it knows.
import { describe, expect, it } from 'vitest';
import { ClosedAgents, LastMessages } from '../../../edge/routing/known-agents.ts';
import type { RosterEntry } from '../../../shared/pool/heartbeat.ts';
import { ROSTER_AGENTS_MAX } from '../../../shared/pool/limits.ts';

const entryOf = (agent: string) =>
  ({ description: { agent }, attestation: 'long', heard: 0 }) as unknown as RosterEntry;

describe('C5 C6 agents that the roster remembers', () => {
  it('newest first to be kept, and bounded', () => {
    const known = new ClosedAgents();
    for (let n = 0; n <= ROSTER_AGENTS_MAX; n += 1) known.add(entryOf(`agent-${n}`), 1_000_000);
    const names = (most: number) => known.list(1_000_000, most).map(({ description }) => description.agent);
    expect(names(10_000)).toHaveLength(ROSTER_AGENTS_MAX);
    expect(names(10_000)).not.toContain('agent-0');
    expect(names(1)).toEqual([`agent-${ROSTER_AGENTS_MAX}`]);
    expect(names(0)).toEqual([]);
    expect(known.list(1_000_000, 1)[0]).toMatchObject({ attestation: '' });
  });

  it('the cache of agents is bounded; expired attestations leave first', () => {
    const heard = new LastMessages(2);
    const boot = (name: string, until: number) => ({ boot: name, seq: 1, issued: 0, earlier: [], until });
    heard.set('a', boot('a', 5_000), 0);
    heard.set('b', boot('b', 1_000), 0);
    heard.set('c', boot('c', 5_000), 2_000);
    expect([heard.get('a')?.seq, heard.get('b'), heard.get('c')?.seq]).toEqual([1, undefined, 1]);
    heard.set('d', boot('d', 5_000), 2_000);
    expect(heard.size).toBe(2);
  });
});
