// Scenarios of `npm run simulate`: fleets under steady load, late reports, faults, tides, overload and a trial.
import { ANSWER_SILENCE_MS } from '../../shared/pool/limits.ts';
import type { SimulatedAgent, State } from './agent.ts';
import type { Simulation } from './events.ts';
import { fleets, type Language } from './fleet.ts';
import type { Scenario } from './run.ts';

const common = { fleet: fleets.six, load: 0.8, seconds: 120, warmSeconds: 10, isolates: 60, lateMs: 50 } as const;

/** Fault and its end, seconds from the start. */
const FAULT_S = [40, 70] as const;
const FLAP_S = 5;

/** Sets the state of agents; work there is lost at once, or late where nothing answers any more. */
function setState(agents: readonly SimulatedAgent[], state: State): void {
  for (const agent of agents) {
    agent.state = state;
    if (state === 'down') agent.lose(0);
    if (state === 'dark') agent.lose(ANSWER_SILENCE_MS);
  }
}

type Faults = NonNullable<Scenario['faults']>;

/** Returns a fault of the chosen agents between the times of `FAULT_S`. */
const fault =
  (chosen: (agents: readonly SimulatedAgent[]) => SimulatedAgent[], state: State): Faults =>
  (agents, { after }) => {
    after(FAULT_S[0] * 1_000, () => setState(chosen(agents), state));
    after(FAULT_S[1] * 1_000, () => setState(chosen(agents), 'up'));
  };

const first = (agents: readonly SimulatedAgent[]) => agents.slice(0, 1);
const westEurope = (agents: readonly SimulatedAgent[]) =>
  agents.filter(({ plan }) => plan.description.region === 'westeurope');

const slow: Faults = (agents, { after }) => {
  const set = (slowness: number) => {
    for (const agent of first(agents)) agent.slowness = slowness;
  };
  after(FAULT_S[0] * 1_000, () => set(4));
  after(FAULT_S[1] * 1_000, () => set(1));
};

const flapping: Faults = (agents, { after, now }: Simulation) => {
  const end = now() + FAULT_S[1] * 1_000;
  const flap = (state: State) => {
    setState(first(agents), state);
    if (now() < end) after(FLAP_S * 1_000, () => flap(state === 'up' ? 'down' : 'up'));
    else setState(first(agents), 'up');
  };
  after(FAULT_S[0] * 1_000, () => flap('down'));
};

/** Daylight of the speakers of a language: their night has a fifth of the traffic of their noon. */
const noon: Readonly<Record<Language, number>> = { zh: 0.2, es: 0.5, en: 0.65 };
const tide = (language: Language, part: number): number => 0.6 + 0.4 * Math.cos(2 * Math.PI * (part - noon[language]));

/** The scenarios in the order of the report. Faults of one pool are in the small fleet, where they hurt most. */
export const scenarios: readonly Scenario[] = [
  { ...common, name: 'six pools' },
  { ...common, name: 'sixty pools', fleet: fleets.sixty, seconds: 50 },
  { ...common, name: 'late by 1 s', lateMs: 1_000 },
  { ...common, name: 'late by 5 s', lateMs: 5_000 },
  { ...common, name: 'stuck pool', load: 0.5, faults: fault(first, 'stuck') },
  { ...common, name: 'slow pool', load: 0.5, faults: slow },
  { ...common, name: 'flapping pool', load: 0.5, faults: flapping },
  {
    ...common,
    name: 'lost region',
    fleet: fleets.sixty,
    load: 0.5,
    seconds: 90,
    faults: fault(westEurope, 'dark'),
  },
  { ...common, name: 'day and night', fleet: fleets.sixty, load: 0.8, seconds: 60, tide },
  { ...common, name: 'twice the load', fleet: fleets.sixty, load: 2, seconds: 50 },
  { ...common, name: 'twice the load on six', load: 2, seconds: 80 },
  { ...common, name: 'canary', load: 0.8, canary: true },
  { ...common, name: 'streams', fleet: fleets.sixty, load: 0.9, seconds: 120, warmSeconds: 60, streamSeconds: 20 },
];

export const scenarioNamed = (name: string): Scenario => {
  const found = scenarios.find((scenario) => scenario.name === name);
  if (!found) throw new Error(`no scenario ${name}: ${scenarios.map((one) => one.name).join(', ')}`);
  return found;
};
