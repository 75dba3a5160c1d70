// Live streams: five hundred at once, measured in two halves, and how many the reference network carries here.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { stopAll } from './front/processes.ts';
import { has } from './front/systems.ts';
import { median } from './median.ts';
import type { Bench } from './run.ts';
import { type AgentHalf, type AgentPhase, measureAgentHalf } from './streams/agent-half.ts';
import { type EdgePhase, measureEdge } from './streams/edge-half.ts';
import { measureReal, PARTIAL_MS_MAX, type RealHalf } from './streams/real-half.ts';
import { measureWholePath, type WholePath } from './streams/whole-path.ts';

/** Measured paths, in this order; `whole` only when it is named. */
const halves = ['edge', 'agent', 'real'] as const;
const paths = [...halves, 'whole'] as const;

interface Plan {
  readonly streams: number;
  readonly seconds: number;
  readonly repeats: number;
  /** Seconds at each number of streams tried with the reference network. */
  readonly step: number;
  readonly only: readonly string[];
  /** Processes of the agent that carry streams. */
  readonly workers: number;
}

/** Options: `--streams=500 --seconds=300 --repeats=1 --step=30 --only=edge,agent,real,whole --workers=1`. */
export async function measure(options: string[]): Promise<Bench> {
  const option = (name: string) => options.find((one) => one.startsWith(`--${name}=`))?.split('=')[1];
  const plan: Plan = {
    streams: Number(option('streams') ?? 500),
    seconds: Number(option('seconds') ?? 300),
    repeats: Number(option('repeats') ?? 1),
    step: Number(option('step') ?? 30),
    only: option('only')?.split(',') ?? halves,
    workers: Number(option('workers') ?? 1),
  };
  const unknown = plan.only.filter((half) => !paths.some((known) => known === half));
  if (unknown.length > 0) throw new Error(`--only: ${unknown} is none of ${paths}`);
  if (!has('taskset')) throw new Error('taskset is needed (apt-get install util-linux)');
  const measured: Measured = {
    edge: await when(plan, 'edge', (folder) => measureEdge({ folder, ...plan })),
    agent: await when(plan, 'agent', (folder) => measureAgentHalf({ folder, ...plan })),
    real: await when(plan, 'real', (folder) => measureReal({ folder, seconds: plan.step })),
    whole: await when(plan, 'whole', (folder) => measureWholePath({ folder, ...plan })),
  };
  return report(measured, plan);
}

interface Measured {
  readonly edge: EdgePhase[] | undefined;
  readonly agent: AgentHalf | undefined;
  readonly real: RealHalf | undefined;
  readonly whole: WholePath | undefined;
}

/** A half that is wanted, in a folder of its own and with nothing left of the one before. */
async function when<T>(plan: Plan, half: (typeof paths)[number], run: (folder: string) => Promise<T>) {
  if (!plan.only.includes(half)) return undefined;
  console.log(`${half}: begins ${new Date().toISOString()}`);
  const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-streams-'));
  try {
    return await run(folder);
  } finally {
    await stopAll();
    rmSync(folder, { recursive: true, force: true });
  }
}

const round = (value: number) => Number(value.toPrecision(3));

function report({ edge = [], agent, real, whole }: Measured, plan: Plan): Bench {
  const figures = { ...edgeFigures(edge), ...agentFigures(agent), ...realFigures(real), ...wholeFigures(whole) };
  const relay = (agent?.relay ?? []).map((phase) => edgeRow(phase, 'bare relay beside the agent'));
  const rows = [
    ...edge.map((phase) => edgeRow(phase, phase.system)),
    ...relay.slice(0, 1),
    ...(agent ? [agentRow(agent.agent)] : []),
    ...relay.slice(1),
    ...(real?.steps ?? []).map(({ streams, phase }) => wordsRow(`agent and network, ${streams}`, phase)),
    ...(real ? [wordsRow(`the same beside recordings, ${real.mixed.streams}`, real.mixed.phase)] : []),
    ...(whole ? [wholeRow(whole)] : []),
  ];
  return {
    table: rows,
    figures: Object.fromEntries(
      Object.entries(figures)
        .filter(([, value]) => !Number.isNaN(value))
        .map(([name, value]) => [name, round(value)]),
    ),
    how: describe(plan),
  };
}

type Load = Pick<EdgePhase['load'], 'ended' | 'sent' | 'p50' | 'p99' | 'lateP99'>;

const row = (system: string, load: Load, lost: number, cpu: number | undefined, cost: EdgePhase['cost']) => ({
  system,
  held: load.ended,
  frames: load.sent,
  lost,
  'p50 ms': round(load.p50),
  'p99 ms': round(load.p99),
  'CPU µs/frame': cpu === undefined ? '' : round(cpu),
  'MiB after a minute': cost ? round(cost.memoryEarly) : '',
  'MiB at the end': cost ? round(cost.memoryLate) : '',
  'load late p99 ms': round(load.lateP99),
});

const edgeRow = ({ load, lost, cpuPerFrame, cost }: EdgePhase, name: string) =>
  row(name, load, lost, cpuPerFrame, cost);
const agentRow = (phase: AgentPhase) => row('agent', phase.load, framesLost(phase), phase.cpuPerFrame, phase.cost);

/** Words are what there is to be late. */
const inWords = (load: AgentPhase['load']): Load => ({ ...load, p50: load.wordP50, p99: load.wordP99 });

const wordsRow = (name: string, phase: AgentPhase) =>
  row(name, inWords(phase.load), framesLost(phase), phase.cpuPerFrame, phase.cost);

const wholeRow = ({ edges, load, edgeCpu, agentCpu }: WholePath) =>
  row(`whole path, ${edges} edge processes`, load, Math.round(load.lostSeconds * 10), edgeCpu + agentCpu, undefined);

const framesLost = ({ load }: AgentPhase) => Math.round(load.lostSeconds * 10);

function edgeFigures(phases: readonly EdgePhase[]): Record<string, number> {
  const of = (name: EdgePhase['system'], take: (phase: EdgePhase) => number | undefined) =>
    median(phases.filter(({ system }) => system === name).map((phase) => take(phase) ?? Number.NaN));
  const ours = phases.filter(({ system }) => system === 'auricle');
  if (ours.length === 0) return {};
  return {
    streams_held: Math.min(...ours.map(({ load }) => load.ended)),
    frames_lost: ours.reduce((sum, { lost }) => sum + lost, 0),
    added_p50_ms: of('auricle', ({ load }) => load.p50) - of('no edge', ({ load }) => load.p50),
    p99_vs_bare_relay: of('auricle', ({ load }) => load.p99) / of('bare relay', ({ load }) => load.p99),
    cpu_vs_bare_relay: of('auricle', (one) => one.cpuPerFrame) / of('bare relay', (one) => one.cpuPerFrame),
    cpu_us_per_frame: of('auricle', (one) => one.cpuPerFrame),
    memory_growth_mib: of('auricle', ({ cost }) => cost && cost.memoryLate - cost.memoryEarly),
  };
}

function agentFigures(half: AgentHalf | undefined): Record<string, number> {
  if (!half) return {};
  const { agent, relay } = half;
  const peer = (take: (phase: EdgePhase) => number | undefined) =>
    relay.length > 0 ? median(relay.map((phase) => take(phase) ?? Number.NaN)) : Number.NaN;
  return {
    agent_streams_held: agent.load.ended,
    agent_frames_lost: framesLost(agent),
    agent_added_p50_ms: agent.load.p50,
    agent_added_p99_ms: agent.load.p99,
    agent_p99_vs_bare_relay: agent.load.p99 / peer(({ load }) => load.p99),
    agent_cpu_vs_bare_relay: agent.cpuPerFrame / peer((one) => one.cpuPerFrame),
    agent_cpu_us_per_frame: agent.cpuPerFrame,
    agent_memory_growth_mib: agent.cost.memoryLate - agent.cost.memoryEarly,
  };
}

function realFigures(half: RealHalf | undefined): Record<string, number> {
  if (!half) return {};
  const { steps, mixed } = half;
  const good = steps.filter((step) => step.good);
  const most = good.find(({ streams }) => streams === Math.max(...good.map((step) => step.streams)));
  return {
    streams_on_two_cores: most?.streams ?? 0,
    ...(most && { partial_p50_ms: most.phase.load.wordP50, partial_p99_ms: most.phase.load.wordP99 }),
    mixed_streams: mixed.streams,
    mixed_streams_held: mixed.phase.load.ended,
    mixed_frames_lost: framesLost(mixed.phase),
    mixed_partial_p50_ms: mixed.phase.load.wordP50,
    mixed_partial_p99_ms: mixed.phase.load.wordP99,
    mixed_sequences_lost: mixed.lost,
    mixed_recordings: mixed.recordings.answered,
    mixed_recordings_failed: mixed.recordings.failed,
    mixed_recording_seconds: mixed.recordings.seconds,
  };
}

function wholeFigures(whole: WholePath | undefined): Record<string, number> {
  if (!whole) return {};
  const { load, edgeCpu, agentCpu } = whole;
  return {
    whole_streams_held: load.ended,
    whole_frames_lost: Math.round(load.lostSeconds * 10),
    whole_word_p50_ms: load.p50,
    whole_word_p99_ms: load.p99,
    whole_edge_cpu_us_per_frame: edgeCpu,
    whole_agent_cpu_us_per_frame: agentCpu,
  };
}

const describe = ({ streams, seconds, repeats, step }: Plan) =>
  `${streams} streams of 16 kHz 16-bit sound in frames of 100 ms at real-time pace, ${seconds} s after 5 s of warm-up, ${repeats} round(s). The edge is raw workerd with its Durable Objects on disk; the thread of it that works has one core, as that of the relay and that of the agent have. Load client and agent double have the other one and are processes of their own; threads of collectors and compilers run where there is room, and count. The bare relay is one Durable Object for each stream that passes messages on; it gets the same frames and the same answers, before and after the edge in each round, and before and after the agent, up to 40 s each. Latency is from a frame that was sent to the event that answers it, to the same double without anything between ("no edge") in the row of that name. CPU is user and system time of the process per frame of the client, from /proc. Frames are counted by position and content at the double. The agent is the real one, with an engine double that answers every step after 10 ms and an edge double that seals; its latency is from the last frame that an interim needed to the interim, less those 10 ms. Agent and network: the reference network in the embedded engine on the machine's cores, ${step} s for each number of streams, and the most of them whose words are shown at p99 < ${PARTIAL_MS_MAX} ms after the sound of their ends was sent; then half as many with three callers beside them that send one recording of 1 to 5 s after the other to the same engine. Load average at the end: ${os
    .loadavg()
    .map((one) => one.toFixed(1))
    .join(', ')}.`;
