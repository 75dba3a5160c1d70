// Brings the revisions that the release map names into the engine, and takes them out again, as the tier policy decides
// (A11, A16). One load and one copy run at a time. A failed move is repeated with back-off; it never stops the others.
import { setTimeout as sleep } from 'node:timers/promises';
import { MODEL_RELOAD_MAX_MS, MODEL_RELOAD_MS } from '../../../../shared/kserve/limits.ts';
import type { ModelDescription } from '../../../../shared/pool/description.ts';
import type { LoadFailure } from '../../../../shared/pool/heartbeat.ts';
import type { Residency } from '../../../../shared/pool/residency.ts';
import type { ModelRelease } from '../../../../shared/registry/release.ts';
import type { Engine } from '../engine/engine.ts';
import { RELEASE_GRACE_MS } from '../identity/release-map.ts';
import type { ServedModel } from '../models/served-model.ts';
import type { FileStore } from '../store/file-store.ts';
import type { Log } from '../telemetry/log.ts';
import { decide, type Move } from '../tier/decide.ts';
import { explain, fileTierOf } from '../tier/explain.ts';
import { addToProfile, advanceProfiles, type Profile, startProfile } from '../tier/profile.ts';
import { bytesIn } from '../tier/score.ts';
import { spaceOf } from '../tier/space.ts';
import { type Held, type TierState, tierSettings } from '../tier/state.ts';
import type { EngineFolder, PlacedRevision } from './engine-folder.ts';
import { findUnused, isAtEngine } from './engine-models.ts';
import { FailedLoads } from './failed-loads.ts';
import type { KnownRevision } from './known-revision.ts';
import { loadIntoEngine, loadNames, unloadFromEngine } from './load.ts';
import type { TierLevel, TierMetrics } from './metrics.ts';
import { idOf, Resident } from './resident.ts';
import { RevisionFiles } from './revision-files.ts';
import { mountedOf, releasedOf, type Wanted } from './wanted.ts';

/** Name of the one device: the engine's memory. */
const DEVICE = 'engine';
/** Bound of a request's wait for a load: 16 GiB from disk. */
export const LOAD_WAIT_MS = 60_000;

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
  readonly random?: () => number;
}

/** A use of a model, which stays loaded until it is released. */
export interface ModelLease {
  readonly release: () => void;
}

/** A move to perform; the reason of it is the policy's. */
type Step = Pick<Move, 'act' | 'model' | 'tier' | 'for'>;

/** A changed residency is sent to the registry: scores change with each request. */
const RESIDENCY_MS = 10_000;

interface Explained {
  /** Epoch ms. */
  readonly at: number;
  readonly residencies: ReadonlyMap<string, Residency>;
}

export class Loader {
  readonly #options: LoaderOptions;
  readonly #residents = new Map<string, Resident>();
  readonly #failed: FailedLoads;
  readonly #files: RevisionFiles;
  /** Epoch ms at which counting began: a language without requests since then is known to be silent. */
  readonly #since: number;
  /** By language. */
  #profiles: ReadonlyMap<string, Profile> = new Map();
  #explained: Explained = { at: Number.NEGATIVE_INFINITY, residencies: new Map() };
  #loading: string | undefined;
  /** The engine's models were read once: what a former process left is known. */
  #engineRead = false;
  #copying: TierState['copying'];
  #mounted: readonly ModelDescription[] = [];
  #reading: Promise<void> | undefined;
  #fetching: Promise<void> | undefined;
  /** The wanted revisions were read once. */
  #read = false;
  readonly #first = Promise.withResolvers<void>();
  readonly #all = Promise.withResolvers<void>();
  /** Resolves when one revision that is pinned to the engine is loaded, or as `settled` does. */
  readonly serving = this.#first.promise;
  /** Resolves when every revision that is pinned to the engine is loaded or has failed, for the first time. */
  readonly settled = this.#all.promise;
  #closed = false;

  constructor(options: LoaderOptions) {
    this.#options = options;
    this.#failed = new FailedLoads(options);
    this.#files = new RevisionFiles(options.store, options.folder, this.#residents);
    this.#since = options.now();
  }

  /** Returns the models that the engine has loaded. */
  served(): ServedModel[] {
    return [...this.#residents.values()].flatMap(({ served }) => served ?? []);
  }

  /** Reports the first loads to those that wait for them. */
  #reportFirst(): void {
    if (!this.#read) return;
    const pinned = this.#allFit() ? this.#stable() : [];
    const settled = pinned.every(({ id, served }) => served !== undefined || this.#failed.has(id));
    if (settled) this.#settle();
    else if (pinned.some(({ served }) => served)) this.#first.resolve();
  }

  #settle(): void {
    this.#first.resolve();
    this.#all.resolve();
  }

  #stable = () => [...this.#residents.values()].filter(({ wanted }) => wanted === 'stable');

  /** Reports whether all stable revisions fit into the memory of the engine. */
  #allFit(): boolean {
    return this.#stable().reduce((sum, { gpuBytes }) => sum + gpuBytes, 0) <= this.#options.bytes.engine;
  }

  /**
   * Describes the wanted revisions that requests do not find loaded, with their tier. A stable one whose load failed
   * counts as the coldest, so that its callers are refused as busy; others leave the list until they are loaded.
   */
  unloaded(): ModelDescription[] {
    return this.#views().flatMap((view) => {
      const resident = this.#residents.get(view.id);
      const hasFailed = this.#failed.has(view.id);
      if (!resident?.wanted || resident.ready || (hasFailed && resident.wanted !== 'stable')) return [];
      return [{ ...resident.known.description, tier: hasFailed ? 'blob' : fileTierOf(view) }];
    });
  }

  failures(): LoadFailure[] {
    return this.#failed.list();
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
   * Leases a revision, after its load if need be. `undefined`: it is not known here, the release stopped naming it
   * before it was loaded, its load failed and is not repeated yet, or took longer than `LOAD_WAIT_MS` or the signal.
   */
  async lease(model: string, revision: string, signal: AbortSignal): Promise<ModelLease | undefined> {
    const resident = this.#residents.get(idOf(model, revision));
    if (!resident?.ready && !resident?.wanted) return undefined;
    this.#count(resident);
    if (!resident.ready && !this.#failed.isDue(resident.id)) return undefined;
    resident.leases += 1;
    let released = false;
    const release = () => {
      if (released) return;
      released = true;
      resident.leases -= 1;
      if (resident.leases === 0) this.#run();
    };
    if (resident.ready || (await this.#awaitLoad(resident, signal))) return { release };
    release();
    return undefined;
  }

  #count(resident: Resident): void {
    const now = this.#options.now();
    resident.count(now);
    const [language = 'und'] = resident.known.description.languages;
    const profile = this.#profiles.get(language) ?? startProfile(this.#since);
    this.#profiles = new Map(this.#profiles).set(language, addToProfile(profile, now));
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
    metrics.waited(resident.ready ? 'loaded' : 'refused', now() - began);
    return resident.ready;
  }

  /**
   * Reads what is wanted and what the engine has, starts due moves, and then reads unknown revisions from the model
   * store. Concurrent calls share each of the two: a model store that does not answer holds up no other step.
   */
  async refresh(): Promise<void> {
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined;
    });
    await this.#reading;
    this.#fetching ??= this.#fetchUnknown().finally(() => {
      this.#fetching = undefined;
    });
    await this.#fetching;
  }

  async #readAll(): Promise<void> {
    const [mounted] = await Promise.all([this.#options.mounted(), this.#readEngine()]);
    for (const known of mounted) this.#add(known, true);
    this.#mounted = mounted.map(({ description }) => description);
    this.#assign();
    this.#read = true;
    this.#run();
  }

  async #fetchUnknown(): Promise<void> {
    for (const { model, revision } of releasedOf(this.#options.released())) {
      const id = idOf(model, revision);
      const resident = this.#residents.get(id);
      // A mounted repository may have other files by now.
      if ((resident && !(resident.isMounted && this.#failed.has(id))) || !this.#failed.isDue(id)) continue;
      try {
        const known = await this.#options.fetchReleased(model, revision);
        if (resident) [resident.known, resident.isMounted] = [known, false];
        else {
          this.#add(known, false);
          this.#failed.delete(id);
        }
      } catch (error) {
        // A mounted one keeps the reason of its failure.
        if (!resident) this.#failed.add(id, error instanceof Error ? error.message : 'it cannot be read');
      }
    }
    // After the last one: the stable revisions are pinned if all of them fit.
    this.#assign();
    this.#run();
  }

  /** Returns what the newest release names. Its role counts for a revision that is mounted, too. */
  #wanted(): Wanted[] {
    const models = this.#options.released();
    return [...mountedOf(this.#mounted, models), ...releasedOf(models)];
  }

  /** Gives each revision its role, and forgets those that have none and are in no tier. */
  #assign(): void {
    const now = this.#options.now();
    const roles = new Map(this.#wanted().map((one) => [idOf(one.model, one.revision), one.role]));
    for (const [id, resident] of this.#residents) {
      resident.assign(roles.get(id), now);
      if (!resident.wanted) resident.wake();
      if (isForgotten(resident) && !this.#hasCopy(resident)) this.#residents.delete(id);
    }
    this.#failed.keep(roles);
  }

  #hasCopy = ({ known }: Resident): boolean => this.#options.folder.find(known.digest) !== undefined;

  #add(known: KnownRevision, isMounted: boolean): void {
    const resident = new Resident(known, this.#options.now());
    resident.isMounted = isMounted;
    if (!this.#residents.has(resident.id)) this.#residents.set(resident.id, resident);
  }

  /**
   * Compares the engine with what is served. An engine that restarted has nothing loaded; one that outlived an agent, or
   * did not answer an unload, has models that no revision uses.
   */
  async #readEngine(): Promise<void> {
    const { engine, folder } = this.#options;
    const before = this.served();
    const states = await engine.loaded(AbortSignal.timeout(MODEL_RELOAD_MS));
    // Without an engine every load fails.
    if (!states.ok) return this.#settle();
    this.#engineRead = true;
    for (const resident of this.#residents.values()) {
      const { served } = resident;
      if (!served || !before.includes(served) || resident.id === this.#loading) continue;
      if (!isAtEngine(states.value, served)) resident.withdraw();
    }
    if (this.#loading !== undefined || this.#closed) return;
    const unused = findUnused(states.value, this.#residents.values(), folder);
    if (unused.length === 0) return;
    this.#useDevice('', async () => {
      for (const name of unused) await engine.unload(name, AbortSignal.timeout(MODEL_RELOAD_MAX_MS));
    });
  }

  #views() {
    const all = [...this.#residents.values()];
    const common = { now: this.#options.now(), allFit: this.#allFit(), device: DEVICE };
    return all.map((one) => one.toTierModel({ ...common, isBackingOff: !this.#failed.isDue(one.id) }));
  }

  #state(): TierState {
    const { bytes, now } = this.#options;
    this.#profiles = advanceProfiles(this.#profiles, now());
    return {
      models: this.#views(),
      devices: [{ id: DEVICE, bytes: bytes.engine, ...(this.#loading !== undefined && { loading: this.#loading }) }],
      ramBytes: bytes.ram,
      ssdBytes: bytes.ssd,
      ...(this.#copying && { copying: this.#copying }),
      profiles: this.#profiles,
      settings: tierSettings,
    };
  }

  /** Starts the moves that the policy decides, one list for the device and one for the copies. */
  #run(): void {
    if (this.#closed) return;
    this.#reportFirst();
    const moves: readonly Step[] = decide(this.#state(), this.#options.now());
    const due = moves.filter(({ tier }) => tier === 'gpu');
    const device = due.length > 0 ? due : this.#unwanted();
    const copies = moves.filter(({ tier }) => tier !== 'gpu');
    const [target] = device.slice(-1);
    if (target && this.#loading === undefined && this.#engineRead) {
      this.#useDevice(target.model, () => this.#perform(device));
    }
    const [copy] = copies.slice(-1);
    if (
      copy &&
      copy.tier !== 'gpu' &&
      this.#copying === undefined &&
      device.every(({ model }) => model !== copy.model)
    ) {
      this.#copying = { model: copy.model, tier: copy.tier };
      void this.#perform(copies).finally(() => {
        this.#copying = undefined;
        this.#run();
      });
    }
  }

  /** Runs one work of the engine, for a revision or, with an empty name, for none. */
  #useDevice(id: string, work: () => Promise<void>): void {
    this.#loading = id;
    void work().finally(() => {
      this.#loading = undefined;
      this.#run();
    });
  }

  /**
   * Drops a revision that the release names no more, and its copy for the engine, once its last lease has ended and no
   * edge routes by a map that names it.
   */
  #unwanted(): Step[] {
    const ended = this.#options.now() - RELEASE_GRACE_MS;
    const one = [...this.#residents.values()].find(
      (resident) =>
        !resident.wanted &&
        (resident.served || this.#hasCopy(resident)) &&
        resident.leases === 0 &&
        resident.unwantedSince <= ended &&
        resident.id !== this.#copying?.model &&
        this.#failed.isDue(resident.id),
    );
    return one ? [{ act: 'drop', model: one.id, tier: 'gpu' }] : [];
  }

  async #perform(moves: readonly Step[]): Promise<void> {
    for (const move of moves) {
      const resident = this.#residents.get(move.model);
      if (!resident) continue;
      // It was not when the list was decided.
      if (move.act === 'drop' && this.#isUsed(move.tier, resident)) return;
      const reason = await this.#act(move, resident).catch((error: unknown) =>
        error instanceof Error ? error.message : 'unknown',
      );
      this.#explained = { ...this.#explained, at: Number.NEGATIVE_INFINITY };
      this.#options.metrics.moved(move, reason === undefined ? 'ok' : 'failed');
      if (reason !== undefined) {
        // A drop that fails keeps its model, and what needs its space.
        const failed = move.for ?? move.model;
        this.#failed.add(failed, reason);
        this.#residents.get(failed)?.wake();
        return;
      }
      const { description, digest: revision } = resident.known;
      this.#options.log('tier-moved', { model: description.name, revision, act: move.act, tier: move.tier });
      if (move.act === 'load') this.#failed.delete(move.model);
    }
  }

  /** Performs one move; returns the reason of a failure. */
  async #act({ act, tier }: Step, resident: Resident): Promise<string | undefined> {
    if (tier === 'gpu') return act === 'load' ? this.#load(resident) : this.#unload(resident);
    if (act === 'drop') return this.#files.drop(tier, resident);
    const { now, metrics } = this.#options;
    const began = now();
    const reason = tier === 'ssd' ? await this.#files.fetch(resident) : await this.#files.place(resident);
    if (reason !== undefined) return reason;
    const took = now() - began;
    resident.measureFill(tier, took / 1_000);
    metrics.phase(tier === 'ssd' ? 'download' : 'copy', took);
    return undefined;
  }

  /** Reports whether a request, a load or a higher tier uses a model in a tier. */
  #isUsed = (tier: Step['tier'], { id, leases, served, inRam }: Resident): boolean =>
    tier === 'gpu' ? leases > 0 : this.#loading === id || (tier === 'ssd' && (served !== undefined || inRam));

  async #load(resident: Resident): Promise<string | undefined> {
    const { engine, folder, serve, now, log, metrics } = this.#options;
    const loaded = await loadIntoEngine({ engine, folder, serve, inUse: this.#inUse(), now }, resident.known);
    if (!loaded.ok) {
      resident.inRam &&= folder.find(resident.known.digest) !== undefined;
      return loaded.refusal;
    }
    const { model, phases, memory } = loaded.value;
    resident.loadedAt = now();
    resident.measureLoad(memory, (phases.loadMs + phases.warmUpMs) / 1_000);
    metrics.phase('copy', phases.copyMs);
    metrics.phase('engine', phases.loadMs);
    metrics.phase('warm_up', phases.warmUpMs);
    log('model-warm', { model: model.description.name, revision: resident.known.digest, ...phases });
    await this.#announce(resident, model);
    return undefined;
  }

  /** Lets requests find a loaded model, those first that wait for it. */
  async #announce(resident: Resident, model: ServedModel): Promise<void> {
    resident.served = model;
    await this.#options.onChange();
    resident.ready = resident.served === model;
    resident.wake();
  }

  /** Returns the names at the engine that loaded models need. */
  #inUse = (): ReadonlySet<string> => new Set(this.served().flatMap(loadNames));

  async #unload(resident: Resident): Promise<string | undefined> {
    const { engine, folder, onChange } = this.#options;
    const model = resident.served;
    // An engine that restarted has lost it, and the copy is left.
    if (model) {
      resident.withdraw();
      await onChange();
      // A request that came meanwhile waits for the next load.
      const reason = await unloadFromEngine(engine, model, this.#inUse());
      if (reason !== undefined) {
        await this.#announce(resident, model);
        return reason;
      }
    }
    if (!resident.wanted) resident.inRam = false;
    if (!resident.inRam) await folder.remove(resident.known.digest);
    return undefined;
  }

  close(): void {
    this.#closed = true;
  }
}

/** A revision in no tier that is not wanted. */
const isForgotten = ({ wanted, served, inRam, inSsd, leases }: Resident): boolean =>
  !wanted && !served && !inRam && !inSsd && leases === 0;
