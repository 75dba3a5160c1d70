import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Line, Lines } from '../../../infra/pool/engine/sequence/lines.ts';

type Step =
  | { do: 'ask'; id: number; start: boolean; end: boolean }
  | { do: 'issue' }
  | { do: 'finish'; which: number }
  | { do: 'wait'; for: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('ask' as const), id: fc.nat(5), start: fc.boolean(), end: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('issue' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('finish' as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('wait' as const), for: fc.nat(20) }) },
);

describe('A5: lines of sequences', () => {
  it('random steps: ordered requests, exclusive slots, and no leaked slot', () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 120 }),
        fc.integer({ min: 1, max: 2 }),
        fc.integer({ min: 1, max: 2 }),
        (steps, instances, slots) => {
          const lines = new Lines<number>(instances, slots, 10);
          const running: Line<number>[] = [];
          const seen = new Map<Line<number>, number[]>();
          let [now, turn, taken, given] = [0, 0, 0, 0];
          const issue = (line: Line<number>) => {
            const wasBusy = line.busy;
            const next = lines.next(line);
            if (next === undefined) return void lines.settle(line);
            expect([wasBusy, line.seat === undefined]).toEqual([false, false]);
            given++;
            seen.set(line, [...(seen.get(line) ?? []), next]);
            running.push(line);
          };
          const act = (one: Step) => {
            if (one.do === 'wait') now += one.for;
            if (one.do === 'issue') for (const line of lines.all()) issue(line);
            if (one.do === 'ask') {
              const known = lines.find(String(one.id));
              const line = lines.join(String(one.id), one, turn++, now);
              expect(line === undefined).toBe(!known && !one.start);
              if (known) expect(line).toBe(known);
              if (line) taken++;
              if (line && one.end) expect(lines.find(String(one.id))).toBeUndefined();
            }
            if (one.do === 'finish' && running.length > 0) {
              const [line] = running.splice(one.which % running.length, 1) as [Line<number>];
              lines.done(line, now);
              lines.settle(line);
            }
            for (const line of lines.idle(now)) {
              expect([line.busy, line.waiting.length]).toEqual([false, 0]);
              lines.end(line);
              lines.settle(line);
            }
            const seats = lines.all().flatMap(({ seat }) => (seat ? [`${seat.instance}/${seat.slot}`] : []));
            expect(new Set(seats).size).toBe(seats.length);
            expect(seats.length).toBeLessThanOrEqual(instances * slots);
            // A slot is free only when no sequence waits for one.
            if (lines.all().some(({ seat }) => !seat)) expect(seats.length).toBe(instances * slots);
          };
          for (const one of steps) act(one);
          for (const line of lines.all()) lines.end(line);
          while (lines.size > 0) {
            act({ do: 'issue' });
            act({ do: 'finish', which: 0 });
          }
          expect([given, lines.waiting]).toEqual([taken, 0]);
          for (const turns of seen.values()) expect(turns).toEqual([...turns].sort((a, b) => a - b));
          for (let seat = 0; seat < instances * slots; seat++)
            expect(lines.join(`last ${seat}`, { start: true, end: false }, 0, now)?.seat).toBeDefined();
        },
      ),
      { numRuns: 300 },
    );
  });
});
