import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pickWaiting } from '../../../functions/audit/intake/pick-waiting.ts';

const name = (outbox: string, from: number, count: number) =>
  `eu/${outbox}/e/${String(from).padStart(16, '0')}-${String(from + count - 1).padStart(16, '0')}`;
const outboxOf = (one: string) => one.split('/')[1] ?? '';

describe('C9 the choice of deliveries for a commit', () => {
  it('takes one per outbox before a second, in event order, up to the limit', () => {
    const names = [name('a', 1, 10), name('a', 11, 10), name('a', 21, 10), name('b', 1, 10), name('c', 5, 10)];
    expect(pickWaiting(names.toReversed(), 35, 9, undefined).names).toEqual([0, 3, 4, 1].map((at) => names[at]));
    expect(pickWaiting(names, 100, 2, undefined)).toEqual({ names: [names[0], names[3]], last: 'eu/b/e' });
    expect(pickWaiting(names, 100, 2, 'eu/b/e').names).toEqual([names[4], names[0]]);
    expect(pickWaiting(names, 100, 2, 'eu/z/e').names).toEqual([names[0], names[3]]);
    expect(pickWaiting([], 100, 2, 'eu/b/e')).toEqual({ names: [], last: 'eu/b/e' });
  });

  it('every outbox has its turn, however many others send without end', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 12 }), (outboxes, most) => {
        const names = Array.from({ length: outboxes }, (_, at) => name(`o${at}`, 1, 100)).flatMap((one) =>
          // The first one has more than all others together.
          outboxOf(one) === 'o0' ? Array.from({ length: 200 }, (_, at) => name('o0', 1 + at * 100, 100)) : [one],
        );
        const seen = new Set<string>();
        let after: string | undefined;
        for (let round = 0; round < Math.ceil(outboxes / most) + 1; round += 1) {
          const picked = pickWaiting(names, 1_000_000, most, after);
          for (const one of picked.names) seen.add(outboxOf(one));
          after = picked.last;
        }
        expect(seen.size).toBe(outboxes);
      }),
      { numRuns: 100 },
    );
  });
});
