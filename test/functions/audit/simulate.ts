// One story of a region's log: what happens, and whether all of it is in the log afterwards, once.
import { type Checkpoint, readCheckpoint } from '../../../shared/audit/checkpoint.ts';
import type { Leaf } from '../../../shared/audit/leaf.ts';
import { readStoredLog, textOf } from '../../fake/log-store.ts';
import type { Fate } from './scheduler.ts';
import { type Outbox, World, ZONE } from './world.ts';

const NEW_YEAR = Date.UTC(2027, 0, 1);
const SUMMER = Date.UTC(2026, 5, 1);
/** Calls that storage answers badly, and calls after it has recovered within which everything must be in the log. */
const TROUBLE_CALLS = 72;
const CALM_CALLS = 4_000;
const [ASTRAY, CENTURY_MS] = [10, 36_525 * 86_400_000];

/** Returns a generator of outcomes; `badness` raises the share of failures. */
function fates(random: () => number, badness: number): () => Fate {
  const ways: Fate[] = ['failed', 'failed but done', 'done but denied', 'crash', 'done and crash'];
  return () => (random() < badness ? (ways[Math.floor(random() * ways.length)] as Fate) : 'done');
}

export interface Outcome {
  readonly world: World;
  /** All that is wrong; nothing, if the log is what it promises to be. */
  readonly problems: readonly string[];
  readonly committed: number;
}

/** The whole story of one seed, in the middle of a year or around its end. A signer must sign at once: `world.ts`. */
export async function simulate(
  seed: number,
  acrossYears = false,
  signer?: ConstructorParameters<typeof World>[2],
): Promise<Outcome> {
  const world = new World(seed, acrossYears ? NEW_YEAR - 700 : SUMMER, signer);
  const { random, problems } = world;
  watchCheckpoints(world);
  let stopping = false;
  const starts = new Map<object, () => void>();
  const begin = (start: (actor: object) => void) => {
    const actor = {};
    starts.set(actor, () => begin(start));
    start(actor);
  };
  const writers = [1, 2, 2, 3][Math.floor(random() * 4)] as number;
  for (let count = 0; count < writers; count += 1) {
    const skew = Math.floor(random() * 600) - 300;
    begin((actor) => void world.run(world.sequencer(actor, skew), () => !stopping));
  }
  // In some of the stories one more writer lives in another century.
  if (seed % ASTRAY === 3) begin((actor) => void world.run(world.sequencer(actor, CENTURY_MS), () => !stopping));
  const outboxes = [1, 1, 2, 3][Math.floor(random() * 4)] as number;
  for (let count = 0; count < outboxes; count += 1) {
    const outbox = world.addOutbox();
    outbox.next += Math.floor(random() * 8);
    // A full tile is 256 entries: a few stories begin shortly before one.
    const first = seed % 100 === 5 && count === 0 ? 240 + Math.floor(random() * 30) : 0;
    outbox.next += first;
    begin((actor) => void deliverAll(world, actor, outbox, () => stopping, outbox.oldest === 1 ? first : 0));
  }
  const died = (actor: object) => starts.get(actor)?.();
  const trouble = fates(random, [0, 0.05, 0.15, 0.3][Math.floor(random() * 4)] as number);
  for (let step = 0; step < 6; step += 1) {
    await world.turn(TROUBLE_CALLS / 6, trouble, died);
    const outbox = world.outboxes[Math.floor(random() * world.outboxes.length)] as Outbox;
    outbox.next += Math.floor(random() * 5);
    world.tellNews();
    if (random() < 0.1) world.lose(outbox, 1 + Math.floor(random() * 3));
  }
  const calm = () => 'done' as const;
  const empty = () => world.outboxes.every(({ oldest, next }) => oldest === next);
  for (let calls = 0; calls < CALM_CALLS && !empty(); calls += 20) await world.turn(20, calm, died);
  stopping = true;
  world.tellNews();
  await world.turn(CALM_CALLS, calm, died);
  if (!empty()) problems.push('not everything was acknowledged');
  else problems.push(...findFaults(world));
  return { world, problems, committed: world.rounds.filter((kind) => kind === 'committed').length };
}

async function deliverAll(
  world: World,
  actor: object,
  outbox: Outbox,
  stopping: () => boolean,
  first: number,
): Promise<void> {
  if (first > 0) await world.deliver(actor, outbox, true);
  while (!stopping()) {
    if (outbox.oldest < outbox.next) await world.deliver(actor, outbox);
    else await world.news();
  }
}

/** Whatever was signed or published at any time: one root for a size, and never a step back. */
export function watchCheckpoints(world: World): void {
  const roots = new Map<string, string>();
  const sizes = new Map<string, number>();
  world.store.watch = (area, name, bytes) => {
    if (!/\/checkpoint(s\/\d+)?$/.test(name)) return;
    const checkpoint = readCheckpoint(textOf(bytes));
    if (!checkpoint) return void world.problems.push(`${name} is no checkpoint`);
    const { origin, size, root } = checkpoint;
    const text = Buffer.from(root).toString('hex');
    const key = `${origin} ${size}`;
    if ((roots.get(key) ?? text) !== text) world.problems.push(`two trees of size ${key}`);
    roots.set(key, text);
    if (area !== 'state') return;
    if (size < (sizes.get(name) ?? 0)) world.problems.push(`${name} went back to ${size}`);
    sizes.set(name, size);
  };
}

export function findFaults(world: World): string[] {
  const { store } = world;
  const years = [2025, 2026, 2027, 2028].filter((year) => store.area('state').has(`${ZONE}/${year}/checkpoint`));
  const problems: string[] = [];
  const leaves: Leaf[] = [];
  for (const [at, year] of years.entries()) {
    try {
      const signed = signedIn(world, year);
      const sizes = [...signed.values()].map((checkpoint) => checkpoint?.size ?? 0);
      const log = readStoredLog(store, ZONE, year, sizes);
      leaves.push(...log.leaves);
      for (const [name, checkpoint] of signed) {
        const root = checkpoint && Buffer.from(checkpoint.root).toString('hex');
        if (log.roots.get(checkpoint?.size ?? 0) !== root) problems.push(`${name} is not of this log`);
      }
      if (log.leaves[0]?.type !== 'shard.open') problems.push(`${year} does not begin`);
      if (at < years.length - 1 && log.leaves.at(-1)?.type !== 'shard.close') problems.push(`${year} does not end`);
    } catch (error) {
      problems.push(`${year}: ${error instanceof Error ? error.message : error}`);
    }
  }
  for (const outbox of world.outboxes) problems.push(...findLost(outbox, leaves));
  for (const tenant of new Set(leaves.map(({ tn }) => tn))) {
    if (tenant === undefined) continue;
    const counts = leaves.flatMap(({ tn, tseq }) => (tn === tenant ? [tseq] : []));
    if (counts.some((tseq, place) => tseq !== place + 1)) problems.push(`${tenant} has holes: ${counts.join()}`);
  }
  const times = leaves.map(({ t }) => t.seq);
  if (times.some((time, at) => at > 0 && time < (times[at - 1] as number))) problems.push('time went back');
  return problems;
}

/** Every checkpoint of a log that was ever signed, by name. */
function signedIn({ store }: World, year: number): Map<string, Checkpoint | undefined> {
  const names = [...store.area('log')].filter(([name]) => name.startsWith(`${ZONE}/${year}/checkpoints/`));
  return new Map(names.map(([name, { bytes }]) => [name, readCheckpoint(textOf(bytes))]));
}

function findLost({ producer, epoch, next, lost }: Outbox, leaves: readonly Leaf[]): string[] {
  const times = new Map<number, number>();
  const gone = new Set<number>();
  for (const leaf of leaves) {
    if (leaf.p === producer && leaf.ep === epoch) times.set(leaf.pseq, (times.get(leaf.pseq) ?? 0) + 1);
    if (leaf.type !== 'producer.gap' || leaf.outbox !== producer || leaf.epoch !== epoch) continue;
    for (let at = Number(leaf.from); at <= Number(leaf.to); at += 1) gone.add(at);
  }
  const problems: string[] = [];
  for (let pseq = 1; pseq < next; pseq += 1) {
    const count = times.get(pseq) ?? 0;
    const dropped = lost.includes(pseq);
    // Drops after the last taken row are reported with the next row, which may never come.
    if (count > 1) problems.push(`${producer} ${pseq} is there ${count} times`);
    if (count === 0 && !dropped) problems.push(`${producer} ${pseq} is lost`);
    if (gone.has(pseq) && (count > 0 || !dropped)) problems.push(`${producer} ${pseq} is called lost`);
  }
  const told = [...times.keys()].filter((pseq) => pseq >= next);
  if (told.length > 0) problems.push(`${producer} never had ${told.join()}`);
  const silent = lost.filter(
    (pseq) => !times.has(pseq) && !gone.has(pseq) && [...times.keys()].some((at) => at > pseq),
  );
  if (silent.length > 0) problems.push(`${producer}: nobody says that ${silent.join()} are lost`);
  return problems;
}
