// A simulated run of revisions between tiers: functions, blob storage, an agent and its engine, each killed at any
// step, with full disks, corrupt bytes, swapped files, and releases that move meanwhile; then without faults.

import { engineNames } from '../../../infra/pool/agent/loader/engine-names.ts';
import { findRevision } from '../../../infra/pool/agent/models/find-revision.ts';
import { partOf, type ReleaseMap } from '../../../shared/registry/release.ts';
import { World } from '../batch/world.ts';
import { AgentProcess, REPOSITORY, STORE } from './agent-process.ts';
import { MemoryDisk } from './memory-disk.ts';
import { ModelStore, makeRevision, type SimulatedRevision } from './model-store.ts';
import { SimulatedEngine } from './simulated-engine.ts';

const DAY_MS = 86_400_000;
const MODELS = ['m', 'n', 'o'];
/** Networks of the revisions of a model, bytes. */
const BYTES = [800, 6_000];
const BYTES_MAX = 6_500;
/** Changes of releases and faults in a run. */
const EVENTS = 20;
/** Rounds without faults in which a run converges. Each skips more than a back-off, the first one a return from archive. */
const CALM_ROUNDS = 8;
const SKIP_MS = 70_000;

/** Bytes of the tiers: for every revision that a release names, or for some of them. */
const SIZES = [
  { engine: 60_000, ram: 40_000, ssd: 40_000 },
  { engine: 16_000, ram: 9_000, ssd: 20_000 },
  { engine: 12_000, ram: 7_500, ssd: 15_000 },
];

export class TierSimulation {
  readonly world: World;
  readonly store: ModelStore;
  readonly disk: MemoryDisk;
  readonly engine: SimulatedEngine;
  readonly bytes: (typeof SIZES)[number];
  readonly revisions: readonly SimulatedRevision[];
  readonly wrong: string[] = [];
  /** Requests by outcome, and processes that were killed. */
  readonly counts = { answered: 0, refused: 0, agents: 0, engines: 0 };
  #agent: AgentProcess;
  /** Names at the engine that requests use now, with the life of the engine. */
  readonly #used = new Set<{ readonly name: string; readonly life: number }>();
  #steps = 0;
  /** Another process has changed files. */
  #isTampered = false;
  #over = false;

  constructor(seed: number) {
    this.world = new World(seed);
    this.revisions = MODELS.flatMap((model) => BYTES.map((bytes, at) => makeRevision(model, at, bytes)));
    this.store = new ModelStore(this.world, this.revisions);
    this.disk = new MemoryDisk(() => this.world.now);
    this.engine = new SimulatedEngine(this.world, this.disk, REPOSITORY);
    this.bytes = this.world.pick(SIZES);
    this.#agent = this.#createAgent();
    this.engine.onMissing = (name) => {
      if (!this.#agent.isDead && !this.#isTampered) this.wrong.push(`${name} lost a file while it was loaded`);
    };
    this.engine.onStart = (name) => this.#onLoad(name);
    this.engine.onUnloaded = (name) => {
      const isUsed = [...this.#used].some((one) => one.name === name && one.life === this.engine.lives);
      if (!this.#agent.isDead && isUsed) this.wrong.push(`${name} is unloaded under a lease`);
    };
  }

  #createAgent(): AgentProcess {
    const { world, disk, store, engine, bytes } = this;
    this.counts.agents += 1;
    const parts = { world, disk, store, engine, bytes };
    return new AgentProcess(
      { ...parts, onStep: () => this.#onStep(), onWithdrawn: (name) => this.#onWithdrawn(name) },
      store.map,
    );
  }

  /** Finds the revision that an engine's name belongs to. */
  #find = (name: string) =>
    this.revisions.find(({ model, files }) => engineNames(files, new Map()).get(model) === name);

  #isNamed(name: string): boolean {
    const found = this.#find(name);
    const { stable, before, canary } = this.#agent.map.models[found?.model ?? ''] ?? {};
    return [stable, before, canary?.revision].includes(found?.digest);
  }

  #onLoad(name: string): void {
    const isOld = this.world.now - this.#agent.mapSince > LATE_MS;
    if (!this.#agent.isDead && isOld && !this.#isNamed(name)) this.wrong.push(`${name} is loaded, and not wanted`);
  }

  /** A wanted revision leaves where all fit. */
  #onWithdrawn(name: string): void {
    const isOld = this.world.now - Math.max(this.#agent.mapSince, this.engine.killedAt) > LATE_MS;
    if (isOld && this.bytes === SIZES[0] && this.engine.models.has(name) && this.#isNamed(name))
      this.wrong.push(`${name} is wanted, and unloaded`);
  }

  #startAgent(): void {
    this.#agent = this.#createAgent();
    this.#used.clear();
    this.engine.clients += 1;
    this.world.go(() => this.#agent.start());
  }

  /** The disk stays within its bounds at every step. */
  #onStep(): void {
    this.#steps += 1;
    if (this.#steps % 4 !== 0) return;
    const sum = (folder: string) => [...this.disk.files(folder).values()].reduce((all, { length }) => all + length, 0);
    if (sum(`${STORE}/files`) + sum(`${STORE}/parts`) > this.bytes.ssd + LOCKS)
      this.wrong.push('the store is too large');
    const { engine, ram } = this.bytes;
    // Bound: loaded revisions, those in ram, and a copy for each of load and fill.
    const most = engine + ram + 4 * BYTES_MAX;
    if (sum(REPOSITORY) + sum(`${REPOSITORY}.unfinished`) > most) this.wrong.push('the repository is too large');
    const loaded = [...this.engine.sizes.values()].reduce((all, one) => all + one, 0);
    if (loaded > engine) this.wrong.push(`the engine has loaded ${loaded} of ${engine} bytes`);
  }

  async run(): Promise<void> {
    const { world } = this;
    this.#startAgent();
    world.go(() => this.#loop(1_000, () => this.#request(this.store.map)));
    world.go(() => this.#loop(60_000, () => this.store.onTimer()));
    world.go(async () => {
      for (const model of MODELS) await this.#release(this.revisions.find((one) => one.model === model)!);
      for (let at = 0; at < EVENTS; at += 1) {
        await this.#event();
        await world.sleep(world.between(0, 8_000));
        this.wrong.push(...(await this.store.findWrong(MODELS)), ...this.#findMissing());
      }
      await this.#calm();
      this.#over = true;
      this.#agent.kill();
    });
    await world.run();
  }

  async #loop(ms: number, work: () => Promise<void>): Promise<void> {
    while (!this.#over) {
      this.world.go(work);
      await this.world.sleep(ms);
    }
  }

  /** Pushes a revision and lets it take all traffic. */
  async #release(revision: SimulatedRevision): Promise<void> {
    await this.#push(revision);
    await this.store.move(revision, { stage: 'full' });
    await this.store.alias(revision);
  }

  async #push(revision: SimulatedRevision): Promise<void> {
    await this.store.register(revision);
    for (let tried = 0; tried < 6 && !this.store.complete.has(revision); tried += 1) await this.store.push(revision);
  }

  async #event(): Promise<void> {
    const { world, store, engine, disk } = this;
    const revision = world.pick(this.revisions);
    const later = (ms: number, run: () => void) => world.after(world.between(0, ms), run);
    const paths = (folder: string) => [...disk.files(folder).keys()].map((file) => `${folder}/${file}`);
    const events: (() => unknown)[] = [
      () => this.#release(revision),
      () => this.#release(revision),
      () => this.#push(revision),
      () => store.move(revision, { stage: 'canary', share: 0.1 }),
      () => store.move(revision, { stage: 'develop-verify' }),
      () => store.rollBack(revision.model),
      () => {
        this.#agent.kill();
      },
      () => {
        this.counts.engines += 1;
        engine.kill();
        later(5_000, () => engine.start());
      },
      () => {
        store.isDown = true;
        later(10_000, () => {
          store.isDown = false;
        });
      },
      () => {
        disk.isFull = true;
        later(10_000, () => {
          disk.isFull = false;
        });
      },
      () => {
        this.#isTampered = true;
        disk.tamper(world.pick([...paths(`${STORE}/files`), ...paths(REPOSITORY), 'none']));
      },
      () => {
        world.now += world.pick([60_000, DAY_MS]);
      },
      // Files that no release needs are archived while an alias moves to them.
      () => {
        world.now += 400 * DAY_MS;
        world.go(() => store.onTimer());
        return store.alias(revision);
      },
    ];
    await world.pick(events)();
    if (this.#agent.isDead) this.#startAgent();
  }

  /** A request as the edge routes it, by a map that may be a second old. */
  async #request(map: ReleaseMap): Promise<void> {
    const { world, engine } = this;
    await world.sleep(world.between(0, 1_000));
    const agent = this.#agent;
    const model = world.pick(MODELS);
    const { stable, canary } = map.models[model] ?? {};
    const revision = canary && world.random() < 0.4 ? canary.revision : stable;
    if (revision === undefined) return;
    const isKnown = [...agent.served.map(({ description }) => description), ...(agent.loader?.unloaded() ?? [])].some(
      (one) => one.revision === revision,
    );
    if (!isKnown) return;
    const gone = new AbortController();
    world.after(10_000, () => gone.abort());
    const lease = await agent.loader?.lease(model, revision, AbortSignal.any([gone.signal, agent.stopped]));
    const name = agent.nameOf(model, revision);
    if (!agent.isDead && lease && name === undefined) this.wrong.push(`${model} is leased, and not found`);
    if (agent.isDead || !lease || name === undefined) {
      lease?.release();
      this.counts.refused += 1;
      return;
    }
    const use = { name, life: engine.lives };
    if (engine.models.has(name)) this.#used.add(use);
    for (let step = world.between(1, 4); step > 0 && !agent.isDead; step -= 1) {
      if (engine.models.has(name)) this.counts.answered += 1;
      if (engine.unverified.has(name)) this.wrong.push(`${name} answers, and is not verified`);
      await world.sleep(world.between(0, 700));
    }
    this.#used.delete(use);
    lease.release();
  }

  /** Lets the run converge without faults, and checks that everything which the map names is served. */
  async #calm(): Promise<void> {
    const { world, store, engine, disk } = this;
    world.calm = true;
    [store.isDown, disk.isFull] = [false, false];
    engine.start();
    if (this.#agent.isDead) this.#startAgent();
    for (const revision of this.revisions)
      if (store.registry(revision.model)?.revisions[revision.digest]) await this.#push(revision);
    world.now += DAY_MS;
    for (let round = 0; round < CALM_ROUNDS; round += 1) await this.#skip();
    const calls = engine.calls.length;
    for (let round = 0; round < 3; round += 1) await this.#skip();
    this.wrong.push(...(await store.findWrong(MODELS)), ...this.#findUnserved());
    const isRoomy = this.bytes === SIZES[0];
    if (isRoomy && engine.calls.length > calls) this.wrong.push(`it moves for ever: ${engine.calls.slice(calls)}`);
  }

  /** Finds files that are not in the tier of their revision. */
  #findMissing(): string[] {
    if (this.#isTampered || this.#agent.isDead) return [];
    const stored = this.disk.files(`${STORE}/files`);
    const placed = this.disk.files(REPOSITORY);
    return (this.#agent.loader?.unloaded() ?? []).flatMap(({ name, revision, tier }) => {
      const { files = [] } = this.revisions.find(({ digest }) => digest === revision) ?? {};
      const isStored = files.every(({ digest }) => stored.has(digest));
      const network = `${engineNames(files, new Map()).get(name)}/1/model.onnx`;
      if (tier === 'ram' && !placed.has(network)) return [`${name} is not in ram`];
      return tier !== 'blob' && !isStored ? [`${name} is not in ${tier}`] : [];
    });
  }

  async #skip(): Promise<void> {
    this.world.now += SKIP_MS;
    await this.world.sleep(2_500);
  }

  #findUnserved(): string[] {
    const { loader, served, map } = this.#agent;
    const wrong: string[] = [];
    if (!loader) return ['the agent has not started'];
    if (map.generation !== this.store.map.generation) wrong.push('the agent has an old map');
    const names = new Set(served.map(({ engineModel = '' }) => engineModel));
    for (const [model, release] of Object.entries(map.models)) {
      const aliased = this.store.registry(model)?.aliases.stable?.revision;
      if (aliased !== release.stable) wrong.push(`the map names ${release.stable}, the alias ${aliased}`);
      for (const digest of [release.stable, release.canary?.revision]) {
        if (digest === undefined || this.bytes !== SIZES[0]) continue;
        const found = findRevision(served, (one) => partOf(map.models[one.name], one), digest);
        if (!found) wrong.push(`${model} ${digest} is not served: ${JSON.stringify(loader.failures())}`);
      }
    }
    for (const { name, revision, tier } of loader.unloaded())
      if (tier === 'blob' && this.bytes === SIZES[0]) wrong.push(`${name} ${revision} is only in the model store`);
    for (const name of this.engine.models.keys()) if (!names.has(name)) wrong.push(`the engine keeps ${name}`);
    for (const name of names) if (!this.engine.models.has(name)) wrong.push(`the engine lacks ${name}`);
    return wrong;
  }
}

/** Time in which an agent follows a new map, or another process of its engine. */
const LATE_MS = 12_000;
/** Bytes of lock files. */
const LOCKS = 200;
