import { describe, expect, it } from 'vitest';
import { pick } from '../../../edge/routing/pick.ts';
import { request } from './fleet.ts';
import { type Plan, type Policy, simulate } from './simulation.ts';

const plan: Plan = {
  seed: 1,
  isolates: 60,
  reportMs: 1_000,
  delayMs: 100,
  slots: [16, 16, 8, 8, 4, 4],
  load: 0.8,
  meanServiceMs: 400,
  seconds: 180,
  brownOut: [60, 120],
};

const ours: Policy = (snapshot, memory, now, random) => {
  const result = pick(request(), { snapshots: [snapshot], memory, now, random });
  if (!result.ok) throw new Error(result.refusal.reason);
  const [first] = result.value;
  return first ? snapshot.entries.indexOf(first.entry) : -1;
};

/** Picks the best agent of the last report, the same one for every isolate until the next report. */
const leastReported: Policy = ({ entries }) => {
  const loads = entries.map(({ load, description }) => (load.busy + load.queued.default) / description.slots);
  return loads.indexOf(Math.min(...loads));
};

const bySlots: Policy = ({ entries }, _memory, _now, random) => {
  let at = random() * entries.reduce((sum, { description }) => sum + description.slots, 0);
  return entries.findIndex(({ description }) => {
    at -= description.slots;
    return at < 0;
  });
};

// Simulated milliseconds of waiting, not measured ones: the same numbers on every machine.
describe('C6 the choice under load, with reports a second old', () => {
  const herd = simulate(plan, leastReported);
  const blind = simulate(plan, bySlots);

  it('the simulation shows the known failures of the two simple policies', () => {
    expect(herd.steady).toBeGreaterThan(1_000);
    expect(blind.brownOut).toBeGreaterThan(3_000);
  });

  it.each([1, 60, 600])('neither herds nor overloads a slow agent, with %i isolates', (isolates) => {
    const { steady, brownOut } = simulate({ ...plan, isolates }, ours);
    expect(steady).toBeLessThan(100);
    expect(brownOut).toBeLessThan(300);
  });
});
