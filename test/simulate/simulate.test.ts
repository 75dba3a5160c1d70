import { expect, it } from 'vitest';
import { fleets } from './fleet.ts';
import { ours, rivals } from './policies.ts';
import { run, type Scenario } from './run.ts';
import { scenarioNamed } from './scenarios.ts';

const scenario: Scenario = {
  ...{ name: 'short', fleet: fleets.six, load: 0.8, seconds: 60, warmSeconds: 10, isolates: 60, lateMs: 1_000 },
};
const policy = (name: string) => rivals.find((one) => one.name === name) ?? ours;
const auricle = run(scenario, ours, 1).figures;

// Simulated milliseconds, not measured ones: the same numbers on every machine.
it('C6 one seed gives the same run again, another seed another run', () => {
  expect(run(scenario, ours, 1).figures).toEqual(auricle);
  expect(run(scenario, ours, 2).figures).not.toEqual(auricle);
});

it('C6 the simulation shows the herd of argmin', () => {
  expect(run(scenario, policy('argmin'), 1).figures.waitMs).toBeGreaterThan(4 * auricle.waitMs);
});

it('C6 requests are answered nearly as soon as by an oracle', () => {
  const oracle = run(scenario, policy('oracle'), 1).figures;
  expect(auricle.answerMs).toBeLessThan(1.2 * oracle.answerMs);
  expect(auricle.failed).toBe(0);
});

it('C6 A2 twice the load breaks no residency, and 95 % of realtime speech is in time', () => {
  const { breaches, realtimeInDeadline, goodput } = run({ ...scenario, load: 2 }, ours, 1).figures;
  expect(breaches).toBe(0);
  expect(realtimeInDeadline).toBeGreaterThan(0.95);
  expect(goodput).toBeGreaterThan(0.95);
});

it.each([1, 600])('C6 neither herds nor overloads a slow pool, with %i isolates', (isolates) => {
  expect(run({ ...scenario, isolates }, ours, 1).figures.waitMs).toBeLessThan(150);
  const slow = { ...scenarioNamed('slow pool'), seconds: 90, isolates };
  expect(run(slow, ours, 1).figures.waitMs).toBeLessThan(run(slow, policy('random'), 1).figures.waitMs / 2);
});
