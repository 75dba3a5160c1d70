// Moves of files between tiers, with workers killed at every call, two at once, and aliases that move meanwhile.
import { expect, it } from 'vitest';
import type { ModelContext } from '../../../functions/registry/model-context.ts';
import { requireOnline } from '../../../functions/registry/require-online.ts';
import type { BlobFacts } from '../../../functions/store/blobs.ts';
import type { Rows } from '../../../functions/store/rows.ts';
import { joinFacts, type RevisionFiles } from '../../../functions/tier/facts.ts';
import { sweepTiers, type TierContext } from '../../../functions/tier/sweep.ts';
import { readUses, usesOf } from '../../../functions/tier/use.ts';
import { seeded } from '../../../shared/registry/seeded.ts';
import type { BlobTier, RehydratePriority } from '../../../shared/registry/tiers.ts';
import { ok } from '../../../shared/result.ts';
import { MemoryRows } from '../../fake/rows.ts';
import { firstSeed, runs } from '../../seeds.ts';

const MODEL = 'reference-en';
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const NOW = 1_767_571_200_000;
const hex = (letter: string) => letter.repeat(64);
const revisionOf = (letter: string) => `sha256:${hex(letter)}`;
const fileOf = (letter: string) => ({ name: `${letter}.onnx`, digest: hex(letter), bytes: 2e9 });

/** Four revisions; `e` is a file of all. */
const revisions = ['a', 'b', 'c', 'd'].map((letter) => ({
  revision: revisionOf(letter),
  files: [fileOf(letter), fileOf('e')],
}));

interface Blob {
  tier: BlobTier;
  since: number;
  returning?: { to: BlobTier; priority: RehydratePriority; end: number };
}

/** Storage with hours of rehydration, rows, and a registry whose aliases need a revision each. */
async function createWorld() {
  const world = {
    now: NOW,
    rows: new MemoryRows(),
    blobs: new Map<string, Blob>(['a', 'b', 'c', 'd', 'e'].map((one) => [hex(one), { tier: 'hot', since: NOW }])),
    aliased: new Set<string>(),
    changes: [] as string[],
    events: new Map<string, string>(),
  };
  const factsOf = (digest: string): BlobFacts => {
    const { tier, since, returning } = world.blobs.get(digest)!;
    const placed = { tier, since, ...(returning && { returning }) };
    return { name: digest, bytes: 2e9, etag: '', metadata: {}, placed };
  };
  const setTier = async (_: string, digest: string, to: BlobTier, priority: RehydratePriority = 'standard') => {
    const blob = world.blobs.get(digest)!;
    if (blob.returning && to !== blob.returning.to) throw new Error('being rehydrated');
    if (blob.tier === to || blob.returning?.priority === priority) return;
    world.changes.push(`${digest} ${blob.tier} ${to}`);
    const end = world.now + (priority === 'high' ? HOUR : 15 * HOUR);
    if (blob.tier === 'archive') blob.returning = { to, priority, end };
    else world.blobs.set(digest, { tier: to, since: world.now });
  };
  const facts = async (rows = world.rows) => {
    const uses = await readUses(rows, MODEL, 100);
    const known = revisions.map(
      ({ revision, files }): RevisionFiles => ({
        ...{ model: MODEL, revision, stage: 'full', aliases: [], files },
        needs: world.aliased.has(revision) ? ['alias'] : [],
        used: Math.max(NOW, uses.get(revision)?.at ?? 0),
        uses: usesOf(uses.get(revision) ?? { at: 0, days: [] }, world.now),
      }),
    );
    return joinFacts(known, [...world.blobs.keys()].map(factsOf));
  };
  const report: TierContext['report'] = async ({ digest, from, to }, { seq }) => {
    world.events.set(`${seq} ${digest}`, `${digest} ${from} ${to}`);
    return ok(undefined);
  };
  const advance = (ms: number) => {
    world.now += ms;
    for (const blob of world.blobs.values()) {
      if (!blob.returning || blob.returning.end > world.now) continue;
      [blob.tier, blob.since] = [blob.returning.to, blob.returning.end];
      delete blob.returning;
    }
  };
  const find = async (_: string, digest: string) => factsOf(digest);
  for (const { revision, files } of revisions)
    await world.rows.commit(MODEL, [{ type: 'put', key: `f!${revision}`, value: { files } }]);
  const context = { rows: world.rows, blobs: { find, setTier }, now: () => world.now, log: () => {} };
  return { world, facts, report, advance, context };
}

type World = Awaited<ReturnType<typeof createWorld>>;

/** Lets other tasks run, for a random time. */
async function passTurns(random: () => number): Promise<void> {
  for (let turns = Math.floor(random() ** 2 * 40); turns > 0; turns -= 1) await undefined;
}

/** Runs a worker that is killed before or after one of its calls, or lives on. */
async function runWorker({ world, facts, report, context }: World, random: () => number, mayDie: boolean) {
  let left = mayDie && random() < 0.5 ? Math.floor(random() * 20) : Number.POSITIVE_INFINITY;
  let kill = () => {};
  const killed = new Promise<'killed'>((resolve) => {
    kill = () => resolve('killed');
  });
  const step = async <T>(call: () => Promise<T>): Promise<T> => {
    await passTurns(random);
    left -= 1;
    const isLast = left === 0;
    const isDone = left > 0 || (isLast && random() < 0.5);
    const result = isDone ? await call() : undefined;
    if (left > 0) return result as T;
    kill();
    return new Promise(() => {});
  };
  const worker: TierContext = {
    ...context,
    rows: {
      ensure: async () => {},
      read: (partition, key) => step(() => world.rows.read(partition, key)),
      scan: (...range) => step(() => world.rows.scan(...range)),
      commit: (partition, changes) => step(() => world.rows.commit(partition, changes)),
    },
    blobs: { setTier: (...sent) => step(() => context.blobs.setTier(...sent)) },
    facts: () => step(() => facts()),
    report: (...sent) => step(() => report(...sent)),
  };
  return Promise.race([sweepTiers(worker), killed]);
}

/** Requires a revision online, as the registry does before an alias names it, with pauses between its calls. */
function require({ world, context }: World, revision: string, random: () => number = () => 0) {
  const slow = async <T>(call: () => Promise<T>): Promise<T> => {
    await passTurns(random);
    return call();
  };
  const rows: Rows = {
    ensure: async () => {},
    read: (partition, key) => slow(() => world.rows.read(partition, key)),
    scan: (...range) => slow(() => world.rows.scan(...range)),
    commit: (partition, changes) => slow(() => world.rows.commit(partition, changes)),
  };
  const find = (container: string, digest: string) => slow(() => context.blobs.find(container, digest));
  return requireOnline({ ...context, rows, blobs: { find } as ModelContext['blobs'] }, MODEL, revision);
}

async function moveAlias(at: World, random: () => number) {
  const { revision } = revisions[Math.floor(random() * revisions.length)]!;
  if (at.world.aliased.delete(revision)) return;
  if ((await require(at, revision, random)).ok) at.world.aliased.add(revision);
}

const archived = ({ world }: World) =>
  revisions.filter(
    ({ revision, files }) =>
      world.aliased.has(revision) && files.some(({ digest }) => world.blobs.get(digest)?.tier === 'archive'),
  );

it('A11 C8 killed and doubled workers archive no aliased file and report every move', async () => {
  let moved = 0;
  for (let seed = firstSeed; seed < firstSeed + runs(60, 600); seed += 1) {
    const random = seeded(seed);
    const at = await createWorld();
    for (let round = 0; round < 12; round += 1) {
      at.advance([5 * 60_000, HOUR, 20 * HOUR, 200 * DAY, 400 * DAY][Math.floor(random() * 5)]!);
      const workers = Array.from({ length: 1 + Math.floor(random() * 2) }, () => runWorker(at, random, true));
      await Promise.all([...workers, moveAlias(at, random), moveAlias(at, random)]);
      expect(archived(at), `seed ${seed}, round ${round}`).toEqual([]);
    }
    for (let round = 0; round < 20 && (await runWorker(at, random, false)) !== 'idle'; round += 1)
      at.advance(20 * HOUR);
    expect(await runWorker(at, random, false), `seed ${seed}`).toBe('idle');
    expect([...at.world.events.values()].sort(), `seed ${seed}`).toEqual(at.world.changes.sort());
    moved += at.world.changes.length;
  }
  expect(moved).toBeGreaterThan(100);
});

it('A11 brings a requested file back from archive with high priority', async () => {
  const at = await createWorld();
  const random = seeded(1);
  at.advance(400 * DAY);
  await runWorker(at, random, false);
  expect([...at.world.blobs.values()].map(({ tier }) => tier)).toEqual(Array(5).fill('archive'));
  at.advance(DAY);
  const refused = await require(at, revisionOf('a'));
  expect(refused).toMatchObject({ refusal: { reason: 'model_archived' } });
  await runWorker(at, random, false);
  expect(at.world.blobs.get(hex('a'))?.returning).toMatchObject({ to: 'hot', priority: 'high' });
  expect(at.world.blobs.get(hex('b'))?.returning).toBeUndefined();
  at.advance(2 * HOUR);
  expect(at.world.blobs.get(hex('a'))?.tier).toBe('hot');
  expect(await require(at, revisionOf('a'))).toEqual(ok(undefined));
});

it('A11 a worker leaves a plan alone while the lease of another one lasts', async () => {
  const at = await createWorld();
  at.advance(400 * DAY);
  const silent: TierContext = { ...at.context, facts: at.facts, report: () => new Promise(() => {}) };
  void sweepTiers(silent);
  for (let turn = 0; turn < 50; turn += 1) await undefined;
  const live: TierContext = { ...at.context, facts: at.facts, report: at.report };
  expect(await sweepTiers(live)).toBe('busy');
  at.advance(5 * 60_000);
  expect(await sweepTiers(live)).toBe('done');
  expect(at.world.events.size).toBe(5);
});

it('C8 begins no further move while the audit log takes no event', async () => {
  const at = await createWorld();
  at.advance(400 * DAY);
  const refused = { ok: false, refusal: { reason: 'audit_unavailable' } } as const;
  const silent: TierContext = { ...at.context, facts: at.facts, report: async () => refused };
  expect(await sweepTiers(silent)).toBe('open');
  const before = at.world.changes.length;
  expect(await sweepTiers(silent)).toBe('open');
  expect(at.world.changes.length).toBe(before);
  expect(await sweepTiers({ ...silent, report: at.report })).toBe('done');
});
