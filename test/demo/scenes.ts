// What happens, one after the other; each scene says what it found, and leaves what the next one needs.
import path from 'node:path';
import { knownReleases } from '../../edge/pool/release.ts';
import { type Evidence, judgeEvidence } from '../../shared/model/evidence.ts';
import { methods } from '../../shared/model/rollout.ts';
import { forCanary, quality, rates, runAt } from '../shared/model/people.ts';
import { climb, enterGrey } from './climb.ts';
import { type Node, readAgents, waitUntil } from './fleet.ts';
import { compare, type Heard, type Hearing, makeSet } from './hearing.ts';
import { type Asked, featuresFor, measureLatency, soundFor } from './measure.ts';
import type { Operator } from './operate.ts';
import { type Built, build, MODEL, type Registered, signAndRegister, spoil, takeShipped } from './revisions.ts';
import { type Story, short } from './story.ts';
import { CLIPS, PAUSE_MS } from './traffic.ts';

const TOOL = 'demo 1';
const rateOf = (heard: Heard): number => {
  const sum = (of: 'errors' | 'words') => heard.flat().reduce((total, one) => total + one[of], 0);
  return sum('errors') / sum('words');
};
export const percentOf = (heard: Heard): string => `${(100 * rateOf(heard)).toFixed(1)} % of the words`;

/** What is served from the start becomes `stable`. Nothing was there before it to compare with: its evidence is by hand. */
export async function begin({ fleet, operator, say }: Pick<Story, 'fleet' | 'operator' | 'say'>): Promise<Registered> {
  const first = await signAndRegister(operator, takeShipped(fleet.folder('shipped')));
  const looked: Evidence[] = [
    { kind: 'scan', tool: 'by hand', verdict: 'PASS', facts: {} },
    { kind: 'load', tool: 'by hand', verdict: 'PASS', facts: {} },
    { kind: 'latency', tool: 'by hand', sla: 200, windows: [100, 100, 100] },
    quality(),
  ];
  const steps = [
    looked,
    forCanary(),
    ...[0, 1, 2, 3].map((at) => [rates(runAt(at, 300, 0, 0))]),
    [rates(runAt(4, 300, 5, 60))],
  ];
  for (const pieces of steps) await move(operator, first, pieces);
  await operator.run('alias', MODEL, 'stable', first.revision);
  say(
    `${short(first.revision)} is what is served from the start: "stable" by evidence that was given by hand, since nothing was before it`,
  );
  return first;
}

/** To the next stage, signed by as many as it takes. Without evidence live traffic says what there is to say. */
async function move(operator: Operator, { revision }: Registered, pieces: readonly Evidence[]): Promise<void> {
  const evidence = pieces.length > 0 ? operator.evidence(pieces) : [];
  const asked = ['promote', MODEL, short(revision), ...evidence, ...operator.as('reviewer')];
  const { id, missing } = await operator.run<{ id: string; missing: number }>(...asked);
  if (missing > 0) await operator.run('approve', MODEL, id, ...operator.as('approver'));
}

interface Looked {
  readonly pieces: readonly Evidence[];
  readonly latency: number;
  readonly heard: Heard;
}

/** What was promised, in milliseconds that a second of sound may take, and of what. */
interface Promised {
  readonly sla: number;
  readonly asked: Asked;
}

/** What the first gate asks for, all of it measured. */
async function lookAt(
  story: Story,
  one: Built,
  node: Node,
  { sla, asked }: Promised,
  hearing: Hearing,
  usual: Heard,
): Promise<Looked> {
  let latency = await measureLatency(node.engine, asked, sla);
  // A machine that does something else meanwhile says nothing, and is asked once more.
  if (judgeEvidence(latency, Date.now()) === 'INCONCLUSIVE') latency = await measureLatency(node.engine, asked, sla);
  const heard = await hearing.hear(one.network);
  const agents = await readAgents(story.fleet.stack);
  const pieces: Evidence[] = [
    // `import` looked into every file, and takes nothing that it does not know.
    { kind: 'scan', tool: 'auricle model import', verdict: 'PASS', facts: {} },
    { kind: 'load', tool: TOOL, verdict: agents.includes(node.agent) ? 'PASS' : 'FAIL', facts: { agent: node.agent } },
    compare(usual, heard, TOOL),
    latency,
  ];
  return { pieces, latency: Math.max(...latency.windows.slice(-3)), heard };
}

export const verdictsOf = (pieces: readonly Evidence[]): string =>
  pieces.map((one) => `${one.kind} ${judgeEvidence(one, Date.now())}`).join(', ');

/** Far more than the reference model needs: a revision that is over it waits for something. */
const GENEROUS = { sla: 150, asked: soundFor(MODEL) };
/** Injected: requests wait so long for company, at each of three networks, as if somebody had tuned it for throughput. */
const QUEUE_MICROSECONDS = 150_000;
/** Injected: how far weights are off. */
const SPREAD = 0.3;
/** Injected: what is promised of the network of 16 bits is so much of what it takes. */
const PROMISE = 0.85;

/** A slow revision, and one that hears worse, are stopped at the first gate, by what was measured of them. */
export async function catchBoth(story: Story, good: Built, hearing: Hearing, usual: Heard): Promise<void> {
  const { fleet, operator, figures, say } = story;
  const [slow, worse] = [
    await build(operator, fleet.folder('slow'), 'reference-en', `--max_queue_delay_microseconds=${QUEUE_MICROSECONDS}`),
    spoil(good, fleet.folder('worse'), SPREAD),
  ];
  const node = await fleet.addNode('slow', slow.repository);
  const late = await lookAt(story, slow, node, GENEROUS, hearing, usual);
  await node.stop();
  const kept = await enterGrey(story, await signAndRegister(operator, slow), late.pieces);
  say(
    `a slow revision: ${late.latency.toFixed(0)} ms for a second of sound (${verdictsOf(late.pieces)}). ${kept ?? 'It went on'}`,
  );
  if (kept?.includes('"latency" is FAIL')) figures.slow_caught += 1;

  const other = await fleet.addNode('worse', worse.repository);
  const deaf = await lookAt(story, worse, other, GENEROUS, hearing, usual);
  await other.stop();
  const held = await enterGrey(story, await signAndRegister(operator, worse), deaf.pieces);
  say(`one that hears worse: ${percentOf(deaf.heard)} (${verdictsOf(deaf.pieces)}). ${held ?? 'It went on'}`);
  if (held?.includes('"quality" is FAIL')) figures.wer_caught += 1;
}

/** Of 16 bits, with a promise that it does not keep: one of 8 bits is made of it, which does, and takes its place. */
export async function quantise(story: Story, hearing: Hearing, usual: Heard): Promise<Registered> {
  const { fleet, operator, figures, say } = story;
  const wide = await build(operator, fleet.folder('wide'), 'reference-en-fp16');
  const node = await fleet.addNode('wide', wide.repository);
  const asked = await featuresFor(path.basename(wide.network));
  const takes = await measureLatency(node.engine, asked, GENEROUS.sla);
  await node.stop();
  const sla = Number((PROMISE * Math.max(...takes.windows.slice(-3))).toFixed(1));
  const one = await signAndRegister(operator, wide, '--sla', `latencyMs=${sla}`);
  const missed = await enterGrey(story, one, [takes]);
  say(`imported, built, signed, registered with 16 bits: ${short(one.revision)}. ${missed ?? 'It went on'}`);
  for (const method of methods) {
    const smaller = await makeSmaller(story, wide);
    say(`made of it with the method "${method}" and registered by the worker: ${short(smaller.revision)}, 8 bits`);
    const joined = await fleet.addNode(method, smaller.repository);
    const looked = await lookAt(story, smaller, joined, { sla, asked }, hearing, usual);
    const kept = await enterGrey(story, smaller, looked.pieces);
    const found = `${looked.latency.toFixed(1)} ms for a second of sound, promised ${sla}; ${percentOf(looked.heard)}`;
    say(`${short(smaller.revision)}: ${found}. ${kept ?? 'It gets copies of live traffic'}`);
    if (kept === undefined) {
      figures.quantised += 1;
      return smaller;
    }
    await joined.stop();
  }
  throw new Error('no smaller one passes the first gate');
}

/** By the worker, which looks into the log of the model for what is wanted, and has the files. */
async function makeSmaller({ fleet, operator }: Story, wide: Built): Promise<Registered> {
  const { stack } = fleet;
  const asked = ['quantise', '--watch', MODEL, '--models', wide.repository, '--out', fleet.folder('smaller')];
  const own = [
    '--edge',
    stack.url,
    '--token',
    stack.token,
    '--calibrate',
    CLIPS,
    '--once',
    ...operator.as('quantiser'),
  ];
  const { made } = await operator.run<{ made: { revision?: string; folder?: string }[] }>(...asked, ...own);
  const [{ revision, folder: repository } = {}] = made;
  if (revision === undefined || repository === undefined) throw new Error('nothing smaller was made');
  return { ...wide, repository, network: path.join(repository, path.basename(wide.network)), revision };
}

/** Through the stages on live traffic, and to everybody. */
export async function promote(story: Story, one: Registered): Promise<void> {
  const { operator, traffic, figures, say } = story;
  traffic.pace(0);
  await climb(story, one);
  await operator.run('alias', MODEL, 'stable', one.revision);
  await waitUntil(async () => (await stableIn(story)).every((revision) => revision === one.revision));
  figures.promoted += 1;
  traffic.pace(PAUSE_MS);
  say(`${short(one.revision)} answers everybody`);
}

/** Under load, which goes on. */
export async function rollBack(story: Story, before: Registered): Promise<void> {
  story.traffic.pace(0);
  const began = performance.now();
  const { revision } = await story.operator.run<{ revision: string }>('rollback', MODEL);
  await waitUntil(async () => (await stableIn(story)).every((named) => named === before.revision));
  story.say(
    `rolled back to ${short(revision)} under load, known to every roster after ${(performance.now() - began).toFixed(0)} ms`,
  );
}

/** The last of the five stages: what was taken back answers nobody any more. */
async function retire({ operator, say }: Story, { revision }: Registered): Promise<void> {
  const reason = 'rolled back, and not to come again';
  const asked = ['promote', MODEL, short(revision), '--to', 'retired', '--reason', reason, ...operator.as('reviewer')];
  const { id, missing } = await operator.run<{ id: string; missing: number }>(...asked);
  if (missing > 0) await operator.run('approve', MODEL, id, ...operator.as('approver'));
  say(`${short(revision)} → retired`);
}

async function stableIn({ fleet: { stack } }: Story): Promise<(string | undefined)[]> {
  const response = await fetch(`${stack.url}/v1/release`, { headers: { authorization: `Bearer ${stack.token}` } });
  return knownReleases.parse(await response.json()).zones.map(({ models }) => models[MODEL]?.stable);
}

export async function play(story: Story, first: Registered): Promise<void> {
  const hearing = await makeSet();
  const usual = await hearing.hear(first.network);
  story.say(
    `generated set: 100 speakers with 20 utterances each; ${short(first.revision)} mishears ${percentOf(usual)}`,
  );
  const next = await quantise(story, hearing, usual);
  // What is caught is caught while the other one climbs.
  await Promise.all([promote(story, next), catchBoth(story, first, hearing, usual)]);
  await rollBack(story, first);
  await retire(story, next);
}
