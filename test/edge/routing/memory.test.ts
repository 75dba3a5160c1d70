import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  EJECT_FAILURES,
  EJECT_MAX_MS,
  EJECT_MS,
  EJECT_WINDOW_MS,
  finished,
  LATENCY_AGE_MS,
  outcomeOf,
  outcomeOfRefusal,
  type RouteMemory,
  started,
  withoutEjected,
} from '../../../edge/routing/memory.ts';
import { ANSWER_START_MS, ROSTER_AGENTS_MAX } from '../../../shared/pool/limits.ts';
import { now } from './fleet.ts';

const none: RouteMemory = new Map();
const trio = ['a', 'b', 'c'].map((agent) => ({ agent, zone: 'eu' }));
const left = (memory: RouteMemory, at = now) => withoutEjected(trio, memory, at).map(({ agent }) => agent);

function repeat(memory: RouteMemory, times: number, outcome: 'healthy' | 'neutral' | 'failure', at = now): RouteMemory {
  return Array.from({ length: times }).reduce<RouteMemory>(
    (sum) => finished(sum, 'a', { outcome, ms: 50, now: at }),
    memory,
  );
}

describe('C6 memory of an isolate', () => {
  it.each([
    [200, 'healthy'],
    [404, 'healthy'],
    [429, 'neutral'],
    [500, 'failure'],
    [502, 'failure'],
    [503, 'neutral'],
    [undefined, 'failure'],
  ])('status %s is %s', (status, outcome) => {
    expect(outcomeOf(status)).toBe(outcome);
  });

  it.each([
    ['audio_invalid', 'healthy'],
    ['pool_busy', 'neutral'],
    ['misdirected', 'neutral'],
    ['engine_failed', 'failure'],
    ['pool_lost', 'failure'],
    ['deadline_passed', 'failure'],
    ['ticket_invalid', 'failure'],
    ['seal_broken', 'failure'],
    ['attestation_invalid', 'failure'],
  ] as const)('refusal %s is %s', (reason, outcome) => {
    expect(outcomeOfRefusal(reason)).toBe(outcome);
  });

  it('a fast refusal improves no latency, a failure counts as the slowest', () => {
    const learned = (outcome: 'healthy' | 'neutral' | 'failure', ms: number) =>
      finished(none, 'a', { outcome, ms, now }).get('a')?.ewmaMs;
    expect([learned('healthy', 0), learned('neutral', 5), learned('healthy', 80)]).toEqual([undefined, undefined, 80]);
    expect(learned('failure', 1)).toBe(ANSWER_START_MS);
    expect(
      finished(finished(none, 'a', { outcome: 'healthy', ms: 100, now }), 'a', {
        outcome: 'healthy',
        ms: 200,
        now,
      }).get('a')?.ewmaMs,
    ).toBe(120);
  });

  it('C6 a latency of an overload long past yields to the first new one', () => {
    const slow = finished(none, 'a', { outcome: 'healthy', ms: 10_000, now });
    const later = now + 6 * LATENCY_AGE_MS;
    const latency = finished(slow, 'a', { outcome: 'healthy', ms: 100, now: later }).get('a')?.ewmaMs;
    expect(latency).toBeLessThan(130);
  });

  it('counts outstanding requests without mutation', () => {
    const one = started(none, 'a');
    const two = started(one, 'a');
    expect([none, one, two].map((memory) => memory.get('a')?.outstanding)).toEqual([undefined, 1, 2]);
    expect(finished(two, 'a', { outcome: 'healthy', ms: 5, now }).get('a')?.outstanding).toBe(1);
    expect(finished(none, 'a', { outcome: 'healthy', ms: 5, now }).get('a')?.outstanding).toBe(0);
  });

  it('ejects after failures in a row, for longer each time', () => {
    const four = repeat(none, EJECT_FAILURES - 1, 'failure');
    expect(left(four)).toEqual(['a', 'b', 'c']);
    expect(left(repeat(repeat(four, 1, 'healthy'), 1, 'failure'))).toEqual(['a', 'b', 'c']);
    const five = repeat(four, 1, 'failure');
    const back = now + EJECT_MS;
    expect([left(five), left(five, back)]).toEqual([
      ['b', 'c'],
      ['a', 'b', 'c'],
    ]);
    const again = repeat(five, EJECT_FAILURES, 'failure', back);
    expect(again.get('a')?.ejected.until).toBe(back + 2 * EJECT_MS);
    const much = repeat(again, 1000, 'failure', back + EJECT_MAX_MS - 1);
    expect(much.get('a')?.ejected.until).toBeLessThan(back + 2 * EJECT_MAX_MS);
  });

  it('ejects for a failure share, but not of few requests', () => {
    const mixed = (rounds: number) =>
      Array.from({ length: rounds }).reduce<RouteMemory>(
        (sum) => repeat(repeat(sum, 2, 'failure'), 1, 'healthy'),
        none,
      );
    expect(left(mixed(6))).toEqual(['a', 'b', 'c']);
    expect(left(mixed(7))).toEqual(['b', 'c']);
  });

  it('counts a share of failures over one window only', () => {
    const rounds = (memory: RouteMemory, times: number, at: number) =>
      Array.from({ length: times }).reduce<RouteMemory>(
        (sum) => repeat(repeat(sum, 2, 'failure', at), 1, 'healthy', at),
        memory,
      );
    const later = now + EJECT_WINDOW_MS;
    expect(left(rounds(rounds(none, 6, now), 1, later - 1), later)).toEqual(['b', 'c']);
    expect(left(rounds(rounds(none, 6, now), 1, later), later)).toEqual(['a', 'b', 'c']);
  });

  it('requests in flight at an ejection do not prolong it', () => {
    const out = repeat(none, EJECT_FAILURES, 'failure');
    const late = repeat(out, EJECT_FAILURES, 'failure', now + EJECT_MS - 1);
    expect(late.get('a')?.ejected).toEqual(out.get('a')?.ejected);
  });

  it('does not eject for "busy"', () => {
    expect(left(repeat(none, 100, 'neutral'))).toEqual(['a', 'b', 'c']);
  });

  it('never empties a zone, and leaves at least half of it', () => {
    const entry = fc.record({ zone: fc.constantFrom('eu', 'us'), failed: fc.boolean() });
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 12 }), (rows) => {
        const fleet = rows.map(({ zone, failed }, at) => ({ agent: `agent-${at}`, zone, failed }));
        const memory = fleet
          .filter(({ failed }) => failed)
          .flatMap(({ agent }) => Array.from({ length: EJECT_FAILURES }, () => agent))
          .reduce<RouteMemory>((sum, agent) => finished(sum, agent, { outcome: 'failure', ms: 50, now }), none);
        const rest = withoutEjected(fleet, memory, now);
        for (const zone of ['eu', 'us']) {
          const [before, after] = [fleet, rest].map((list) => list.filter((one) => one.zone === zone).length);
          expect(after).toBeGreaterThanOrEqual(Math.ceil((before ?? 0) / 2));
        }
        expect(rest).toEqual(expect.arrayContaining(fleet.filter(({ failed }) => !failed)));
      }),
    );
  });

  it('forgets agents that are idle for long', () => {
    const many = Array.from({ length: ROSTER_AGENTS_MAX + 10 }).reduce<RouteMemory>(
      (sum, _, at) => finished(sum, `agent-${at}`, { outcome: 'healthy', ms: 5, now }),
      none,
    );
    expect(finished(many, 'new', { outcome: 'healthy', ms: 5, now: now + EJECT_MAX_MS + 1 }).size).toBe(1);
  });
});
