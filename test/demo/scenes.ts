// Scenes in sequence; each reports its findings and leaves the state that the next one needs.
import path from 'node:path';
import { z } from 'zod';
import { type Evidence, evaluateEvidence, evidence, slowestOf } from '../../shared/registry/evidence.ts';
import { methods } from '../../shared/registry/rollout.ts';
import { forCanary, quality, rates, runAt } from '../shared/registry/people.ts';
import { climb, enterGrey } from './climb.ts';
import { type Node, readStable, waitUntil } from './fleet.ts';
import { compare, type ErrorCounts, type Hearing, makeSet } from './hearing.ts';
import { measureLatency, measureMemory, TOOL } from './measure.ts';
import type { Operator } from './operate.ts';
import { type Built, build, MODEL, type Registered, signAndRegister, spoil, takeShipped } from './revisions.ts';
import { retire, rollBack } from './roll-back.ts';
import { type Story, short } from './story.ts';
import { CLIPS, PAUSE_MS } from './traffic.ts';

const rateOf = (heard: ErrorCounts): number => {
  const sum = (of: 'errors' | 'words') => heard.flat().reduce((total, one) => total + one[of], 0);
  return sum('errors') / sum('words');
};
export const percentOf = (heard: ErrorCounts): string => `${(100 * rateOf(heard)).toFixed(1)} % of the words`;

/**
 * Makes the shipped revision `stable`. No earlier one exists for comparison, so its evidence is written by
 * hand.
 */
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
  /** Milliseconds for a second of sound. */
  readonly latency: number;
  readonly bytes: number;
  readonly heard: ErrorCounts;
}

/** Far more than the reference model needs for a second of sound: a revision that is over it waits for something. */
const GENEROUS_MS = 150;

/** Measures the evidence of the first gate. */
async function lookAt(story: Story, one: Built, node: Node, hearing: Hearing, usual: ErrorCounts): Promise<Looked> {
  const looked = await scanAndLoad(story, one, node);
  let latency = await measureLatency(node.engine, MODEL, GENEROUS_MS);
  // A machine that does something else meanwhile says nothing, and is asked once more.
  if (evaluateEvidence(latency, Date.now()) === 'INCONCLUSIVE')
    latency = await measureLatency(node.engine, MODEL, GENEROUS_MS);
  const heard = await hearing.hear(one.network);
  const memory = await measureMemory(one.network, story.signal);
  const pieces = [...looked, compare(usual, heard, TOOL), latency, memory];
  return { pieces, latency: slowestOf(latency.windows), bytes: memory.bytes, heard };
}

const measured = z.object({ evidence: z.array(evidence) });

/** Every file is looked into, and the engine asked whether it is ready with what they say, as operators do it. */
async function scanAndLoad({ operator }: Story, { repository }: Built, { engine }: Node): Promise<Evidence[]> {
  const file = path.join(path.dirname(repository), `${path.basename(repository)}-evidence.json`);
  return measured.parse(await operator.run('measure', repository, MODEL, '--engine', engine, '--out', file)).evidence;
}

export const verdictsOf = (pieces: readonly Evidence[]): string =>
  pieces.map((one) => `${one.kind} ${evaluateEvidence(one, Date.now())}`).join(', ');

/** Injected fault: batching delay of each of three networks, as after tuning for throughput. */
const QUEUE_MICROSECONDS = 150_000;
/** Injected: how far weights are off. */
const SPREAD = 0.3;
/** Injected: so much is promised of the memory that the network of 16 bits takes; of 8 bits it takes some 0.8. */
const PROMISE = 0.88;

/** A slow revision, and one that hears worse, are stopped at the first gate, by what was measured of them. */
export async function catchBoth(story: Story, good: Built, hearing: Hearing, usual: ErrorCounts): Promise<void> {
  const { fleet, operator, figures, say } = story;
  const [slow, worse] = [
    await build(operator, fleet.folder('slow'), 'reference-en', `--max_queue_delay_microseconds=${QUEUE_MICROSECONDS}`),
    spoil(good, fleet.folder('worse'), SPREAD),
  ];
  const node = await fleet.addNode('slow', slow.repository);
  const late = await lookAt(story, slow, node, hearing, usual);
  await node.stop();
  const kept = await enterGrey(story, await signAndRegister(operator, slow), late.pieces);
  say(
    `a slow revision: ${late.latency.toFixed(0)} ms for a second of sound (${verdictsOf(late.pieces)}). ${kept ?? 'It went on'}`,
  );
  if (kept?.includes('"latency" is FAIL')) figures.slow_caught += 1;

  const other = await fleet.addNode('worse', worse.repository);
  const deaf = await lookAt(story, worse, other, hearing, usual);
  await other.stop();
  const held = await enterGrey(story, await signAndRegister(operator, worse), deaf.pieces);
  say(`one that hears worse: ${percentOf(deaf.heard)} (${verdictsOf(deaf.pieces)}). ${held ?? 'It went on'}`);
  if (held?.includes('"quality" is FAIL')) figures.wer_caught += 1;
}

/** Registers a 16-bit revision that misses its target; its 8-bit version meets it and replaces it. */
export async function quantise(story: Story, hearing: Hearing, usual: ErrorCounts): Promise<Registered> {
  const { fleet, operator, figures, say } = story;
  const wide = await build(operator, fleet.folder('wide'), 'reference-en-fp16');
  const takes = await measureMemory(wide.network, story.signal);
  const promised = Math.floor(PROMISE * takes.bytes);
  const one = await signAndRegister(operator, wide, '--sla', `memoryBytes=${promised}`);
  const missed = await enterGrey(story, one, [takes]);
  say(`imported, built, signed, registered with 16 bits: ${short(one.revision)}. ${missed ?? 'It went on'}`);
  for (const method of methods) {
    const smaller = await makeSmaller(story, wide);
    say(`made of it with the method "${method}" and registered by the worker: ${short(smaller.revision)}, 8 bits`);
    const joined = await fleet.addNode(method, smaller.repository);
    const looked = await lookAt(story, smaller, joined, hearing, usual);
    const kept = await enterGrey(story, smaller, looked.pieces);
    const memory = `${inMegabytes(looked.bytes)} MB of memory, promised ${inMegabytes(promised)}`;
    const found = `${memory}; ${looked.latency.toFixed(1)} ms for a second of sound; ${percentOf(looked.heard)}`;
    say(`${short(smaller.revision)}: ${found}. ${kept ?? 'It gets copies of live traffic'}`);
    if (kept === undefined) {
      figures.quantised += 1;
      return smaller;
    }
    await joined.stop();
  }
  throw new Error('no smaller one passes the first gate');
}

const inMegabytes = (bytes: number): string => (bytes / 1e6).toFixed(1);

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

/** Promotes a revision through the stages on live traffic. */
export async function promote(story: Story, one: Registered): Promise<void> {
  const { operator, traffic, figures, say } = story;
  traffic.pace(0);
  await climb(story, one);
  await operator.run('alias', MODEL, 'stable', one.revision);
  await waitUntil(async () =>
    (await readStable(story.fleet.stack, MODEL)).every((revision) => revision === one.revision),
  );
  figures.promoted += 1;
  traffic.pace(PAUSE_MS);
  say(`${short(one.revision)} answers everybody`);
}

export async function play(story: Story, first: Registered): Promise<void> {
  const hearing = await makeSet();
  const usual = await hearing.hear(first.network);
  story.say(
    `generated set: 100 speakers with 20 utterances each; ${short(first.revision)} mishears ${percentOf(usual)}`,
  );
  const next = await quantise(story, hearing, usual);
  // The gates catch both faults during the promotion.
  await Promise.all([promote(story, next), catchBoth(story, first, hearing, usual)]);
  await rollBack(story, first, next);
  await retire(story, next, first);
}
