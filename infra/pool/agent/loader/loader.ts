// Brings the revisions that the release map names into the engine, and takes them out again, as the tier policy decides
// (A11, A16). One load and one copy run at a time. A failed move is repeated with back-off; it never stops the others.
import { setTimeout as sleep } from 'node:timers/promises';
import { type BackOff, backOffMs } from '../../../../shared/back-off.ts';
import { MODEL_RELOAD_MAX_MS, MODEL_RELOAD_MS } from '../../../../shared/kserve/limits.ts';
import type { ModelDescription } from '../../../../shared/pool/description.ts';
import { LOAD_REASON_CHARACTERS, type LoadFailure } from '../../../../shared/pool/heartbeat.ts';
import type { Residency } from '../../../../shared/pool/residency.ts';
import type { ModelRelease } from '../../../../shared/registry/release.ts';
import type { Engine } from '../engine/engine.ts';
import { RELEASE_GRACE_MS } from '../identity/release-map.ts';
import type { ServedModel } from '../models/served-model.ts';
import type { FileStore } from '../store/file-store.ts';
import type { Log } from '../telemetry/log.ts';
import { decide, type Move } from '../tier/decide.ts';
import { explain, tierOf } from '../tier/explain.ts';
import { addToProfile, type Profile, startProfile } from '../tier/profile.ts';
import { bytesIn } from '../tier/score.ts';
import { spaceOf } from '../tier/space.ts';
import { type Held, type TierState, tierSettings } from '../tier/state.ts';
import type { EngineFolder, PlacedRevision } from './engine-folder.ts';
import type { KnownRevision } from './known-revision.ts';
import { loadIntoEngine, loadNames, unloadFromEngine } from './load.ts';
import type { TierLevel, TierMetrics } from './metrics.ts';
import { idOf, Resident } from './resident.ts';
import { mountedOf, releasedOf, type Wanted } from './wanted.ts';

/** Name of the one device: the engine's memory. */
const DEVICE = 'engine';
/** Bound of a request's wait for a load: 16 GiB from disk. */
export const LOAD_WAIT_MS = 60_000;
const pauses: BackOff = { firstMs: MODEL_RELOAD_MS, maxMs: MODEL_RELOAD_MAX_MS };

export interface LoaderOptions {
  readonly engine: Engine;
  readonly store: FileStore;
  readonly folder: EngineFolder;
  /** Models of the newest release map. */
  readonly released: () => Readonly<Record<string, ModelRelease>>;
  /** Reads the mounted repository. */
  readonly mounted: () => Promise<readonly KnownRevision[]>;
  /** Reads a released revision from the model store; rejects while it is not there. */
  readonly fetchReleased: (model: string, revision: string) => Promise<KnownRevision>;
  /** Makes a loaded revision's model. */
  readonly serve: (known: KnownRevision, placed: PlacedRevision) => Promise<ServedModel>;
  /** Bounds of the tiers. */
  readonly bytes: { readonly engine: number; readonly ram: number; readonly ssd: number };
  /** Called after the set of loaded models has changed. */
  readonly onChange: () => Promise<void>;
  readonly log: Log;
  readonly metrics: TierMetrics;
  /** Epoch ms. */
  readonly now: () => number;
}

/** A use of a model, which stays loaded until it is released. */
export interface ModelLease {
  readonly release: () => void;
}

/** A move to perform; the reason of it is the policy's. */
type Step = Pick<Move, 'act' | 'model' | 'tier'>;

/** A changed residency is sent to the registry: scores change with each request. */
const RESIDENCY_MS = 10_000;

interface Explained {
  /** Epoch ms. */
  readonly at: number;
  readonly residencies: ReadonlyMap<string, Residency>;
}

interface Failed {
  readonly reason: string;
  readonly count: number;
  /** Epoch ms. */
  readonly retryAt: number;
}

export class Loader {
  readonly #options: LoaderOptions;
  readonly #residents = new Map<string, Resident>();
  readonly #failed = new Map<string, Failed>();
  readonly #profiles = new Map<string, Profile>();
  #explained: Explained = { at: Number.NEGATIVE_INFINITY, residencies: new Map() };
  #loading: string | undefined;
  #filling: TierState['filling'];
  #refreshing: Promise<void> | undefined;
  /** The wanted revisions were read once. */
  #read = false;
  #onSettled = () => {};
  /** Resolves when every revision that is pinned to the engine is loaded or has failed, for the first time. */
  readonly settled: Promise<void>;
  #closed = false;

  constructor(options: LoaderOptions) {
    this.#options = options;
    this.settled = new Promise((resolve) => {
      this.#onSettled = resolve;
    });
  }

  /** Returns the models that the engine has loaded. */
  served(): ServedModel[] {
    return [...this.#residents.values()].flatMap(({ served }) => served ?? []);
  }

  #isSettled(): boolean {
    const isLoaded = ({ id, served }: Resident) => served !== undefined || this.#failed.has(id);
    return this.#read && (!this.#allFit() || this.#stable().every(isLoaded));
  }

  #stable = () => [...this.#residents.values()].filter(({ wanted }) => wanted === 'stable');

  /** Reports whether all stable revisions fit into the memory of the engine. */
  #allFit(): boolean {
    return this.#stable().reduce((sum, { gpuBytes }) => sum + gpuBytes, 0) <= this.#options.bytes.engine;
  }

  /** Describes the wanted revisions that are not loaded, with their tier. */
  unloaded(): ModelDescription[] {
    return this.#views().flatMap((view) => {
      const resident = this.#residents.get(view.id);
      const tier = tierOf(view);
      if (!resident?.wanted || tier === 'gpu' || this.#failed.has(view.id)) return [];
      return [{ ...resident.known.description, tier }];
    });
  }

  failures(): LoadFailure[] {
    return [...this.#failed].map(([id, { reason }]) => ({ model: id.split(' ')[0] ?? id, reason }));
  }

  /** Returns the bytes in each tier, and their bounds. */
  levels(): TierLevel[] {
    const state = this.#state();
    const { engine, ram, ssd } = this.#options.bytes;
    return Object.entries({ gpu: engine, ram, ssd } as const).map(([name, limit]) => {
      const tier = name as Held;
      const { occupants } = spaceOf(state, tier, DEVICE);
      return { tier, limit, bytes: occupants.reduce((sum, one) => sum + bytesIn(one, tier), 0) };
    });
  }

  /** Returns why a revision is loaded or is not, at most `RESIDENCY_MS` old unless a move has ended since. */
  residency(model: string, revision: string): Residency | undefined {
    const now = this.#options.now();
    if (now - this.#explained.at >= RESIDENCY_MS)
      this.#explained = { at: now, residencies: explain(this.#state(), now) };
    return this.#explained.residencies.get(idOf(model, revision));
  }

  /**
   * Leases a revision, after its load if need be. `undefined`: it is not known here, or its load took longer than
   * `LOAD_WAIT_MS` or the signal.
   */
  async lease(model: string, revision: string, signal: AbortSignal): Promise<ModelLease | undefined> {
    const resident = this.#residents.get(idOf(model, revision));
    if (!resident) return undefined;
    const { now } = this.#options;
    resident.count(now());
    const [language = 'und'] = resident.known.description.languages;
    this.#profiles.set(language, addToProfile(this.#profiles.get(language) ?? startProfile(now()), now()));
    resident.leases += 1;
    let released = false;
    const release = () => {
      if (released) return;
      released = true;
      resident.leases -= 1;
      if (resident.leases === 0) this.#run();
    };
    if (resident.served || (await this.#awaitLoad(resident, signal))) return { release };
    release();
    return undefined;
  }

  async #awaitLoad(resident: Resident, signal: AbortSignal): Promise<boolean> {
    const { now, metrics } = this.#options;
    const done = new AbortController();
    const wake = () => done.abort();
    const began = now();
    resident.waiting.set(wake, began);
    this.#run();
    const late = AbortSignal.any([signal, done.signal]);
    await sleep(LOAD_WAIT_MS, undefined, { signal: late }).catch(() => undefined);
    resident.waiting.delete(wake);
    const isLoaded = resident.served !== undefined;
    metrics.waited(isLoaded ? 'loaded' : 'refused', now() - began);
    return isLoaded;
  }

  /** Reads what is wanted and what the engine has, and starts due moves. Shared by concurrent calls. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #refresh(): Promise<void> {
    await Promise.all([this.#readWanted(), this.#readEngine()]);
    this.#run();
  }

  async #readWanted(): Promise<void> {
    const models = this.#options.released();
    const mounted = await this.#options.mounted();
    for (const known of mounted) this.#add(known);
    const own = mountedOf(
      mounted.map(({ description }) => description),
      models,
    );
    // The role of the release counts for a revision that is mounted, too.
    const wanted = [...own, ...releasedOf(models)];
    this.#assign(wanted);
    this.#read = true;
    // A model store that does not answer holds up no load of what is known.
    this.#run();
    for (const { model, revision } of wanted) {
      const id = idOf(model, revision);
      if (this.#residents.has(id) || !this.#isDue(id)) continue;
      try {
        this.#add(await this.#options.fetchReleased(model, revision));
        this.#failed.delete(id);
      } catch (error) {
        this.#fail(id, error instanceof Error ? error.message : 'it cannot be read');
      }
    }
    this.#assign(wanted);
  }

  /** Gives each revision its role, and forgets those that have none and are in no tier. */
  #assign(wanted: readonly Wanted[]): void {
    const now = this.#options.now();
    const roles = new Map(wanted.map((one) => [idOf(one.model, one.revision), one.role]));
    for (const [id, resident] of this.#residents) {
      resident.assign(roles.get(id), now);
      if (isForgotten(resident)) this.#residents.delete(id);
    }
    for (const id of this.#failed.keys()) if (!roles.has(id)) this.#failed.delete(id);
  }

  #add(known: KnownRevision): void {
    const resident = new Resident(known, this.#options.now());
    if (!this.#residents.has(resident.id)) this.#residents.set(resident.id, resident);
  }

  /** An engine that restarted has nothing loaded. */
  async #readEngine(): Promise<void> {
    const states = await this.#options.engine.loaded(AbortSignal.timeout(MODEL_RELOAD_MS));
    if (!states.ok) return;
    for (const resident of this.#residents.values()) {
      const name = resident.served?.engineModel;
      if (name === undefined || resident.id === this.#loading) continue;
      const state = states.value.get(name)?.is;
      if (state !== 'ready' && state !== 'loading') resident.served = undefined;
    }
  }

  #isDue = (id: string) => (this.#failed.get(id)?.retryAt ?? 0) <= this.#options.now();

  #fail(id: string, reason: string): void {
    const { now, log } = this.#options;
    const known = this.#failed.get(id);
    const count = (known?.count ?? 0) + 1;
    const short = reason.slice(0, LOAD_REASON_CHARACTERS);
    const [model = id, revision = ''] = id.split(' ');
    if (known?.reason !== short) log('model-load-failed', { model, revision, detail: short, count });
    this.#failed.set(id, { reason: short, count, retryAt: now() + backOffMs(count - 1, pauses, Math.random()) });
  }

  #views() {
    const all = [...this.#residents.values()];
    const allFit = this.#allFit();
    const now = this.#options.now();
    return all.map((one) => one.toTierModel({ now, allFit, isHeld: !this.#isDue(one.id), device: DEVICE }));
  }

  #state(): TierState {
    const { bytes } = this.#options;
    return {
      models: this.#views(),
      devices: [{ id: DEVICE, bytes: bytes.engine, ...(this.#loading !== undefined && { loading: this.#loading }) }],
      ramBytes: bytes.ram,
      ssdBytes: bytes.ssd,
      ...(this.#filling && { filling: this.#filling }),
      profiles: this.#profiles,
      settings: tierSettings,
    };
  }

  /** Starts the moves that the policy decides, one list for the device and one for the copies. */
  #run(): void {
    if (this.#closed) return;
    if (this.#isSettled()) this.#onSettled();
    const moves: Step[] = [...decide(this.#state(), this.#options.now()), ...this.#unwanted()];
    const device = moves.filter(({ tier }) => tier === 'gpu');
    const copies = moves.filter(({ tier }) => tier !== 'gpu');
    const [target] = device.slice(-1);
    if (target && this.#loading === undefined) {
      this.#loading = target.model;
      void this.#perform(device).finally(() => {
        this.#loading = undefined;
        this.#run();
      });
    }
    const [copy] = copies.slice(-1);
    if (
      copy &&
      copy.tier !== 'gpu' &&
      this.#filling === undefined &&
      device.every(({ model }) => model !== copy.model)
    ) {
      this.#filling = { model: copy.model, tier: copy.tier };
      void this.#perform(copies).finally(() => {
        this.#filling = undefined;
        this.#run();
      });
    }
  }

  /**
   * Drops a loaded revision that the release names no more, once its last lease has ended and no edge routes by a map
   * that names it.
   */
  #unwanted(): Step[] {
    const ended = this.#options.now() - RELEASE_GRACE_MS;
    const one = [...this.#residents.values()].find(
      ({ served, wanted, leases, unwantedSince }) => served && !wanted && leases === 0 && unwantedSince <= ended,
    );
    return one ? [{ act: 'drop', model: one.id, tier: 'gpu' }] : [];
  }

  async #perform(moves: readonly Step[]): Promise<void> {
    for (const move of moves) {
      const resident = this.#residents.get(move.model);
      if (!resident) continue;
      const reason = await this.#act(move, resident).catch((error: unknown) =>
        error instanceof Error ? error.message : 'unknown',
      );
      this.#explained = { ...this.#explained, at: Number.NEGATIVE_INFINITY };
      this.#options.metrics.moved(move, reason === undefined ? 'ok' : 'failed');
      if (reason !== undefined) return this.#fail(move.model, reason);
      if (move.act === 'load') this.#failed.delete(move.model);
    }
  }

  /** Performs one move; returns the reason of a failure. */
  async #act({ act, tier }: Step, resident: Resident): Promise<string | undefined> {
    if (tier === 'gpu') return act === 'load' ? this.#load(resident) : this.#unload(resident);
    if (act === 'drop') return this.#drop(tier, resident);
    const { now, metrics } = this.#options;
    const began = now();
    const reason = tier === 'ssd' ? await this.#fetch(resident) : await this.#place(resident);
    if (reason !== undefined) return reason;
    const took = now() - began;
    resident.measureFill(tier, took / 1_000);
    metrics.phase(tier === 'ssd' ? 'download' : 'copy', took);
    return undefined;
  }

  async #fetch(resident: Resident): Promise<string | undefined> {
    const { store } = this.#options;
    for (const file of resident.known.files) {
      const fetched = await store.fetch(file, resident.known.source);
      if (!fetched.ok) return `${fetched.refusal.reason}: ${fetched.refusal.detail}`;
      fetched.value.release();
    }
    resident.inSsd = true;
    this.#pin();
    return undefined;
  }

  async #place(resident: Resident): Promise<string | undefined> {
    const placed = await this.#options.folder.place(resident.known, resident.known.source);
    if (!placed.ok) return `${placed.refusal.reason}: ${placed.refusal.detail}`;
    resident.inRam = true;
    return undefined;
  }

  async #drop(tier: 'ram' | 'ssd', resident: Resident): Promise<undefined> {
    const { folder, store } = this.#options;
    if (tier === 'ram') {
      resident.inRam = false;
      if (!resident.served) await folder.remove(resident.known.digest);
      return;
    }
    resident.inSsd = false;
    this.#pin();
    for (const { digest } of resident.known.files) await store.evict(digest);
  }

  /** Keeps the files of each revision that is on disk. */
  #pin(): void {
    const held = [...this.#residents.values()].filter(({ inSsd }) => inSsd);
    this.#options.store.pin(held.flatMap(({ known }) => known.files.map(({ digest }) => digest)));
  }

  async #load(resident: Resident): Promise<string | undefined> {
    const { engine, folder, serve, now, log, metrics, onChange } = this.#options;
    const loaded = await loadIntoEngine({ engine, folder, serve, inUse: this.#inUse(), now }, resident.known);
    if (!loaded.ok) return loaded.refusal;
    const { model, phases, memory } = loaded.value;
    resident.served = model;
    resident.loadedAt = now();
    resident.measureLoad(memory, (phases.loadMs + phases.warmUpMs) / 1_000);
    metrics.phase('copy', phases.copyMs);
    metrics.phase('engine', phases.loadMs);
    metrics.phase('warm_up', phases.warmUpMs);
    log('model-warm', { model: model.description.name, revision: resident.known.digest, ...phases });
    await onChange();
    for (const wake of resident.waiting.keys()) wake();
    return undefined;
  }

  /** Returns the names at the engine that loaded models need. */
  #inUse = (): ReadonlySet<string> => new Set(this.served().flatMap(loadNames));

  async #unload(resident: Resident): Promise<string | undefined> {
    const { engine, folder, onChange } = this.#options;
    const model = resident.served;
    if (!model) return undefined;
    resident.served = undefined;
    await onChange();
    // A request that came meanwhile waits for the next load.
    const reason = await unloadFromEngine(engine, model, this.#inUse());
    if (!resident.inRam) await folder.remove(resident.known.digest);
    return reason;
  }

  close(): void {
    this.#closed = true;
  }
}

/** A revision in no tier that is not wanted. */
const isForgotten = ({ wanted, served, inRam, inSsd, leases }: Resident): boolean =>
  !wanted && !served && !inRam && !inSsd && leases === 0;
