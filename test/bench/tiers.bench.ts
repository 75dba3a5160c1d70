// Tiers of the agent: the policy itself, replayed beside LRU, LFU, GDSF and an oracle. Options: `--seeds=2 --days=3`.
import { decide } from '../../infra/pool/agent/tier/decide.ts';
import { tierSettings } from '../../infra/pool/agent/tier/state.ts';
import type { Bench } from './run.ts';
import { createGdsf, createLfu, createLru, createOracle } from './tiers/rivals.ts';
import { type Machine, type Outcome, type Policy, simulate } from './tiers/simulate.ts';
import { makeTrace, type Trace } from './tiers/trace.ts';

const machines: readonly (Machine & { readonly name: string })[] = [
  { name: '12 GB, no memory for files', gpuBytes: 12e9, ramBytes: 0 },
  { name: '12 GB and 20 GB of memory', gpuBytes: 12e9, ramBytes: 20e9 },
  { name: '24 GB and 20 GB of memory', gpuBytes: 24e9, ramBytes: 20e9 },
];

const OURS = 'decide';
const policiesOf = (trace: Trace): Policy[] => [
  createLru(),
  createLfu(),
  createGdsf(),
  createOracle(trace),
  { name: OURS, decide, managesRam: true },
  {
    name: 'decide, no anticipation',
    decide,
    managesRam: true,
    settings: { ...tierSettings, horizonMs: 0, profileShare: 0 },
  },
];

interface Run {
  readonly machine: string;
  readonly policy: string;
  readonly outcome: Outcome;
}

export function measure(options: string[]): Promise<Bench> {
  const option = (name: string, usual: number) =>
    Number(options.find((one) => one.startsWith(`--${name}=`))?.split('=')[1] ?? usual);
  const [seeds, days] = [option('seeds', 2), option('days', 3)];
  const runs: Run[] = [];
  for (let seed = 1; seed <= seeds; seed += 1) {
    const trace = makeTrace(
      { models: 60, languages: 12, days, perSecond: 0.15, sessions: 0.3, drift: 0.3, releases: 2 },
      seed,
    );
    for (const machine of machines) {
      for (const policy of policiesOf(trace)) {
        runs.push({ machine: machine.name, policy: policy.name, outcome: simulate(trace, machine, policy) });
      }
    }
  }
  const stall = (policy: string, machine?: string) =>
    sum(
      runs.filter((run) => run.policy === policy && (machine ?? run.machine) === run.machine),
      (o) => o.stallSeconds,
    );
  const ratio = (peer: string, machine?: string) => Number((stall(OURS, machine) / stall(peer, machine)).toFixed(3));
  return Promise.resolve({
    table: tableOf(runs),
    figures: {
      stall_vs_lru: ratio('LRU'),
      stall_vs_oracle: ratio('oracle on demand'),
      stall_vs_gdsf: ratio('GDSF'),
      stall_vs_lru_without_ram: ratio('LRU', machines[0]?.name),
      stall_vs_lru_with_ram: ratio('LRU', machines[1]?.name),
    },
    how: describe(seeds, days),
  });
}

const sum = (runs: readonly Run[], take: (outcome: Outcome) => number) =>
  runs.reduce((all, { outcome }) => all + take(outcome), 0);

function tableOf(runs: readonly Run[]) {
  const rows = Map.groupBy(runs, ({ machine, policy }) => `${machine}\n${policy}`);
  return [...rows.values()].map((same) => {
    const requests = sum(same, (one) => one.requests);
    return {
      machine: same[0]?.machine ?? '',
      policy: same[0]?.policy ?? '',
      'waited %': Number(((100 * sum(same, (one) => one.waited)) / requests).toFixed(1)),
      'mean stall ms': Math.round((1_000 * sum(same, (one) => one.stallSeconds)) / requests),
      'p99 stall ms': Math.round((1_000 * sum(same, (one) => one.p99)) / same.length),
      loads: sum(same, (one) => one.loads),
      'GB loaded': Math.round(sum(same, (one) => one.gigabytes)),
    };
  });
}

const describe = (seeds: number, days: number) =>
  `A simulation: no GPU, synthetic traces (test/bench/tiers/trace.ts), ${seeds} seeds of ${days} days, the first day not counted. 60 models in 12 languages, 0.06 to 3.2 GB, about 40 GB together, 0.15 requests a second; languages follow the day of their time zone, shares drift daily, two revisions a day are replaced, 30 % of the requests come in runs of 20. A load takes 0.12 s and the bytes at 12 GB/s from memory or 1.2 GB/s from SSD; one load at a time; a request waits for it and for the loads before it; every policy has the same bytes. Memory is managed by the policy for ours, and a page cache (least recently read goes) for the others. The oracle knows the trace and drops what costs least per byte until its next request; it loads on demand only, has the page cache, and is therefore no lower bound where there is memory. stall_vs_*: seconds that requests waited, all machines and seeds together.`;
