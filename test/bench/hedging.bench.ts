// A second attempt for late requests (hedging), simulated with the production `pick`: what it would gain. The edge has none.
import { type AgentMemory, finishedOne, startedOne } from '../../edge/routing/memory.ts';
import { pick } from '../../edge/routing/pick.ts';
import { agent, now as epoch, request, snapshot } from '../edge/routing/fleet.ts';
import { randomOf } from '../fake/random.ts';
import { createSimulation } from '../simulate/events.ts';
import { median } from './median.ts';
import type { Bench } from './run.ts';

const AGENTS = 6;
const SLOTS = 8;
const LOAD = 0.5;
const MEAN_MS = 300;
const SECONDS = 180;
const ISOLATES = 60;
/** Share of requests that may have a second attempt. */
const HEDGES = 0.02;
const SEEDS = 5;

/** Agent 0 is five times slower for a minute, stands still for 20 s, or each request has a 2 % chance of ten times. */
const faults = ['none', 'slow', 'still', 'jitter'] as const;
type Fault = (typeof faults)[number];

interface Try {
  readonly at: number;
  readonly began: number;
  state: 'queued' | 'running' | 'over';
  readonly done: () => void;
  readonly ms: number;
}

function simulate(seed: number, fault: Fault, hedges: boolean) {
  const random = randomOf(seed);
  const simulation = createSimulation(epoch);
  const elapsed = () => simulation.now() - epoch;
  const agents = Array.from({ length: AGENTS }, () => ({ busy: 0, queue: [] as Try[] }));
  const isolates = Array.from({ length: ISOLATES }, () => ({
    memory: new Map<string, AgentMemory>(),
    recent: [] as number[],
    tokens: 1,
  }));
  const latencies: number[] = [];
  let [known, hedged, won, requests] = [snapshot([]), 0, 0, 0];
  const isFaulty = (at: number, until: number) => at === 0 && elapsed() > 60_000 && elapsed() < until;
  const factor = (at: number) => {
    if (fault === 'slow' && isFaulty(at, 120_000)) return 5;
    return fault === 'jitter' && random() < 0.02 ? 10 : 1;
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  /** Lognormal with a coefficient of variation of 1: long utterances take long at every agent. */
  const serviceMs = () => MEAN_MS * Math.exp(normal() * Math.sqrt(Math.LN2) - Math.LN2 / 2);

  function start(at: number): void {
    const one = agents[at] as (typeof agents)[number];
    if (fault === 'still' && isFaulty(at, 80_000)) return;
    while (one.busy < SLOTS && one.queue.length > 0) {
      const next = one.queue.shift() as Try;
      if (next.state === 'over') continue;
      next.state = 'running';
      one.busy += 1;
      simulation.after(next.ms * factor(at), () => {
        if (next.state === 'over') return;
        end(next);
        next.done();
      });
    }
  }
  function end(one: Try): void {
    if (one.state === 'running') (agents[one.at] as (typeof agents)[number]).busy -= 1;
    one.state = 'over';
    start(one.at);
  }
  function report(): void {
    const entries = agents.map(({ busy, queue }, at) => {
      const interactive = queue.filter(({ state }) => state === 'queued').length;
      const load = { busy, queued: { realtime: 0, interactive, default: 0, batch: 0 }, serviceMs: MEAN_MS };
      return agent(`agent-${at}`, { slots: SLOTS }, load, simulation.now());
    });
    const made = snapshot(entries, 'eu', simulation.now());
    simulation.after(100, () => {
      known = made;
    });
    if (elapsed() < SECONDS * 1_000) simulation.after(1_000, report);
  }
  function arrive(): void {
    const isolate = isolates[Math.floor(random() * ISOLATES)] as (typeof isolates)[number];
    const { memory, recent } = isolate;
    const [arrived, ms, tries] = [elapsed(), serviceMs(), [] as Try[]];
    requests += 1;
    isolate.tokens = Math.min(2, isolate.tokens + HEDGES);
    const picked = pick(request({ class: 'interactive' }), {
      snapshots: [known],
      memory,
      now: epoch + arrived,
      random,
    });
    const plan = picked.ok ? picked.value.map(({ entry }) => Number(entry.description.agent.slice(6))) : [];
    const send = (at: number, isHedge: boolean) => {
      const name = `agent-${at}`;
      memory.set(name, startedOne(memory.get(name)));
      const done = () => {
        latencies.push(elapsed() - arrived);
        recent.push(elapsed() - arrived);
        if (recent.length > 200) recent.shift();
        if (isHedge) won += 1;
        for (const other of tries) {
          end(other);
          const work = { outcome: 'healthy', ms: elapsed() - other.began, now: simulation.now() } as const;
          memory.set(`agent-${other.at}`, finishedOne(memory.get(`agent-${other.at}`), work));
        }
      };
      const one: Try = { at, began: elapsed(), state: 'queued', done, ms };
      tries.push(one);
      agents[at]?.queue.push(one);
      start(at);
    };
    send(plan[0] ?? 0, false);
    const p95 = recent.toSorted((one, other) => one - other)[Math.floor(recent.length * 0.95)];
    const [, second] = plan;
    if (hedges && p95 !== undefined && second !== undefined && recent.length >= 20) {
      simulation.after(p95, () => {
        if (tries.some(({ state }) => state === 'over') || isolate.tokens < 1) return;
        isolate.tokens -= 1;
        hedged += 1;
        send(second, true);
      });
    }
    const gapMs = (-Math.log(1 - random()) * MEAN_MS) / (LOAD * AGENTS * SLOTS);
    if (elapsed() < SECONDS * 1_000) simulation.after(gapMs, arrive);
  }
  report();
  simulation.after(150, arrive);
  simulation.after(80_001, () => start(0));
  simulation.runUntil(epoch + 2 * SECONDS * 1_000);
  latencies.sort((one, other) => one - other);
  const quantile = (share: number) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN;
  return { p95: quantile(0.95), p99: quantile(0.99), hedged: hedged / requests, won: hedged && won / hedged };
}

export function measure(): Promise<Bench> {
  const rows = faults.map((fault) => {
    const runs = (hedges: boolean) => Array.from({ length: SEEDS }, (_, seed) => simulate(seed + 1, fault, hedges));
    const [plain, other] = [runs(false), runs(true)];
    const middle = (list: typeof plain, read: (one: (typeof plain)[number]) => number) => median(list.map(read));
    const p99 = { plain: middle(plain, (one) => one.p99), hedged: middle(other, (one) => one.p99) };
    return {
      fault,
      p99_ms: Math.round(p99.plain),
      p99_hedged_ms: Math.round(p99.hedged),
      ratio: Number((p99.hedged / p99.plain).toFixed(3)),
      hedged: Number(middle(other, (one) => one.hedged).toFixed(4)),
      won: Number(middle(other, (one) => one.won).toFixed(3)),
    };
  });
  return Promise.resolve({
    table: rows,
    figures: Object.fromEntries(
      rows.flatMap(({ fault, ratio, won }) => [
        [`p99_${fault}`, ratio],
        [`won_${fault}`, won],
      ]),
    ),
    how: `${AGENTS} agents of ${SLOTS} slots at ${LOAD * 100} % load for ${SECONDS} s, ${ISOLATES} isolates, reports each second, lognormal service of ${MEAN_MS} ms that the utterance decides, not the agent. A request that is late by the p95 of its isolate gets a second attempt at the next agent of its plan, at most ${HEDGES * 100} % of requests; the first answer wins and frees the other slot. none: no fault; slow: an agent is 5 times slower for 60 s; still: it begins nothing for 20 s; jitter: 2 % of services take 10 times. Medians of ${SEEDS} seeds.`,
  });
}
