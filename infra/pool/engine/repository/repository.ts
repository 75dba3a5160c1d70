import { readdir } from 'node:fs/promises';
import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import type { IndexEntry } from '../../../../shared/kserve/repository.ts';
import { ok, type Result } from '../../../../shared/result.ts';
import { REPOSITORY_MODELS_MAX } from '../../models/config/read-parts.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import { isEnsemble } from '../../models/config/settle.ts';
import { listUnhonoured } from '../../models/config/unhonoured.ts';
import { type Clock, systemClock } from '../clock.ts';
import { type Plan, planEnsemble } from '../ensemble/plan.ts';
import { serveEnsemble } from '../ensemble/serve-ensemble.ts';
import { log } from '../log.ts';
import { loadNetwork } from '../model/load-network.ts';
import { isModelName, type ModelFiles, readModel } from '../model/read-model.ts';
import type { Served } from '../model/served.ts';
import { type EngineRefusal, refuse } from '../refuse.ts';
import type { Settings } from '../settings.ts';
import { LoadRetries } from './load-retries.ts';
import { Slot } from './slot.ts';

type Done = Result<void, EngineRefusal>;
const done: Done = ok(undefined);
/** Reason of a load that could not read the repository: a file may vanish while it is replaced. */
const unreadable = (error: NodeJS.ErrnoException): string =>
  `the repository cannot be read: ${error.code ?? error.name}`;

/**
 * Models of one directory and their loaded versions. Loads and unloads run one after the other: concurrent
 * ones would compete for memory in random order. A wanted model that serves nothing is reloaded until it
 * serves or is unloaded, unless loads are explicit.
 */
export class Repository {
  readonly #settings: Settings;
  readonly #retries: LoadRetries;
  readonly #slots = new Map<string, Slot>();
  #tail: Promise<unknown> = Promise.resolve();
  #started = false;

  constructor(settings: Settings, clock: Clock = systemClock) {
    this.#settings = settings;
    this.#retries = new LoadRetries(clock, (slot) => void this.#inTurn(() => this.#retry(slot)));
  }

  /** Loads the configured models. A failing model is unready with its reason; the others serve. */
  async start(): Promise<void> {
    const listed = await this.#list();
    for (const name of this.#settings.models ?? listed) {
      // A configured model is wanted even while its folder is missing.
      if (isModelName(name)) this.#slotOf(name).wanted = true;
      await this.load(name);
    }
    this.#started = true;
  }

  #slotOf(name: string): Slot {
    const slot = this.#slots.get(name) ?? new Slot(name);
    this.#slots.set(name, slot);
    return slot;
  }

  async #list(): Promise<string[]> {
    const entries = await readdir(this.#settings.repository, { withFileTypes: true }).catch((error) => {
      // The writer of the models of an explicit engine may create the folder later.
      if (this.#settings.explicit && error.code === 'ENOENT') return [];
      throw error;
    });
    const names = entries.filter((entry) => entry.isDirectory() && isModelName(entry.name)).map(({ name }) => name);
    if (names.length > REPOSITORY_MODELS_MAX)
      throw new Error(`the repository has ${names.length} models, over ${REPOSITORY_MODELS_MAX}`);
    return names.sort();
  }

  get ready(): boolean {
    return this.#started && (this.#settings.explicit || [...this.#slots.values()].every((slot) => slot.healthy));
  }

  /** Reports whether failed loads are repeated without a request. */
  get retriesLoads(): boolean {
    return !this.#settings.explicit;
  }

  get served(): Served[] {
    return [...this.#slots.values()].flatMap((slot) => [...slot.served.values()]);
  }

  readonly find = (name: string, version: number | undefined): Result<Served, EngineRefusal> => {
    const slot = this.#slots.get(name);
    const called = `Request for unknown model: '${name}'`;
    if (!slot || slot.state === undefined) return refuse('NOT_FOUND', `${called} is not found`);
    const found = version === undefined ? slot.latest : slot.served.get(version);
    if (found) return ok(found);
    if (slot.served.size > 0) return refuse('NOT_FOUND', `${called} version ${version} is not found`);
    const why = slot.reason && `: ${slot.reason}`;
    // Triton distinguishes an unknown version from an unloaded one.
    return version === undefined
      ? refuse('NOT_FOUND', `${called} has no available versions${why}`)
      : refuse('UNAVAILABLE', `${called} version ${version} is not at ready state${why}`);
  };

  unhonoured(name: string): string[] {
    const files = this.#slots.get(name)?.files;
    return files ? listUnhonoured(files.config) : [];
  }

  async index(readyOnly: boolean): Promise<IndexEntry[]> {
    const listed = await this.#list();
    this.#forget(listed);
    const names = new Set([...listed, ...this.#slots.keys()]);
    const entries = [...names].sort().flatMap((name) => (this.#slots.get(name) ?? new Slot(name)).describe());
    return readyOnly ? entries.filter(({ state }) => state === 'READY') : entries;
  }

  /** Drops unloaded models whose folder is gone: revisions come and go as long as the process runs. */
  #forget(listed: readonly string[]): void {
    const present = new Set(listed);
    for (const { name, wanted, state } of this.#slots.values())
      if (!wanted && state === 'UNAVAILABLE' && !present.has(name)) this.#slots.delete(name);
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(act);
    this.#tail = result.catch(() => {});
    return result;
  }

  load(name: string): Promise<Done> {
    return this.#inTurn(async () => {
      // A load that throws has cancelled the scheduled retry and needs another.
      const loaded = await this.#load(name, []).finally(() => this.#settle());
      if (!loaded.ok) return loaded;
      const slot = this.#slots.get(name);
      if (slot) slot.explicit = true;
      return slot?.served.size ? done : refuse('INVALID_ARG', `load failed for model '${name}': ${slot?.reason ?? ''}`);
    });
  }

  async #retry(slot: Slot): Promise<void> {
    if (slot.healthy) return;
    await this.#load(slot.name, []).catch((error) => this.#fail(slot, unreadable(error)));
    this.#settle();
  }

  /** Updates ensembles and retries after a load or an unload. */
  #settle(): void {
    this.#settleEnsembles();
    if (this.#settings.explicit) return;
    // A step's model that serves nothing has its own retry, or was unloaded on purpose; its next load revives
    // the ensemble.
    this.#retries.update(this.#slots.values(), ({ files }) =>
      (files?.config.ensemble_scheduling?.step ?? []).some(
        ({ model_name: part }) => this.#slots.get(part)?.served.size === 0,
      ),
    );
  }

  async #load(name: string, above: readonly string[]): Promise<Done> {
    if (!isModelName(name) || !(await this.#list()).includes(name)) {
      const missing = this.#slots.get(name);
      if (missing?.wanted) this.#fail(missing, 'no such model in the repository');
      return refuse('NOT_FOUND', `failed to load '${name}', no such model in the repository`);
    }
    const slot = this.#slotOf(name);
    slot.wanted = true;
    this.#retries.begin(slot);
    const files = await readModel(this.#settings.repository, name).catch((error) => fault(unreadable(error)));
    if (!files.ok) return this.#fail(slot, files.refusal.reason);
    if (slot.served.size > 0 && slot.files?.fingerprint === files.value.fingerprint) return done;
    const loaded = isEnsemble(files.value.config)
      ? await this.#loadEnsemble(slot, files.value, [...above, name])
      : await this.#loadVersions(slot, files.value);
    if (loaded.ok) for (const what of listUnhonoured(files.value.config)) log('not honoured', { model: name, what });
    return loaded;
  }

  /**
   * Notes a failed load. Versions that served before continue; only a model without one becomes unavailable.
   */
  #fail(slot: Slot, reason: string): Done {
    log('load failed', { model: slot.name, reason });
    if (slot.served.size === 0) {
      slot.rest('UNAVAILABLE', reason);
      slot.wanted = !this.#settings.explicit;
    }
    return refuse('INVALID_ARG', `load failed for model '${slot.name}': ${reason}`);
  }

  async #loadVersions(slot: Slot, files: ModelFiles): Promise<Done> {
    if (slot.served.size === 0) slot.rest('LOADING', '');
    const fresh: Served[] = [];
    for (const version of files.versions) {
      const loaded = await loadNetwork(files, version, slot.statistics(version), this.#settings.intraThreads);
      if (!loaded.ok) {
        await Promise.all(fresh.map((one) => one.close()));
        return this.#fail(slot, `version ${version}: ${loaded.refusal.reason}`);
      }
      fresh.push(loaded.value);
    }
    const old = [...slot.served.values()];
    slot.files = files;
    slot.serve(fresh);
    log('model ready', { model: slot.name, versions: files.versions.join(',') });
    await Promise.all(old.map((one) => one.close()));
    return done;
  }

  /** Loads the models of an ensemble; `#settleEnsembles` then decides whether it can serve. */
  async #loadEnsemble(slot: Slot, files: ModelFiles, above: readonly string[]): Promise<Done> {
    const steps = files.config.ensemble_scheduling?.step ?? [];
    for (const part of new Set(steps.map(({ model_name }) => model_name))) {
      if (above.includes(part)) return this.#fail(slot, `the ensembles form a circle: ${[...above, part].join(' → ')}`);
      if (this.#slots.get(part)?.served.size) continue;
      const loaded = await this.#load(part, above);
      if (!loaded.ok) log('part failed', { model: slot.name, part });
      this.#settleEnsembles();
    }
    const plan = this.#plan(files.config);
    if (!plan.ok && slot.served.size > 0) return this.#fail(slot, plan.refusal.reason);
    slot.files = files;
    if (!plan.ok) this.#fail(slot, plan.refusal.reason);
    return done;
  }

  /** Rechecks all ensembles after a change: ready, or not with a reason. Repeats while a change follows. */
  #settleEnsembles(): void {
    const ensembles = [...this.#slots.values()].filter(
      (slot) => slot.wanted && slot.files && isEnsemble(slot.files.config),
    );
    for (let changed = true; changed; ) {
      changed = false;
      for (const slot of ensembles) {
        const before = slot.served.size > 0;
        this.#settleEnsemble(slot, slot.files!);
        changed ||= before !== slot.served.size > 0;
      }
    }
  }

  #plan(config: ModelConfig): Read<Plan> {
    return planEnsemble(config, ({ model_name, model_version }) => {
      const part = this.find(model_name, model_version > 0 ? model_version : undefined);
      return part.ok ? part.value.config : undefined;
    });
  }

  #settleEnsemble(slot: Slot, { config, versions }: ModelFiles): void {
    const plan = this.#plan(config);
    if (!plan.ok) {
      slot.rest('UNAVAILABLE', plan.refusal.reason);
      return;
    }
    const serve = (version: number) =>
      serveEnsemble({
        ...{ config, version, plan: plan.value, find: this.find, turns: slot.turns },
        ...{ statistics: slot.statistics(version), clock: systemClock },
      });
    slot.serve(versions.map(serve));
  }

  /** Unloads a model; returns once its memory is free. Unloading an unloaded model succeeds, as in Triton. */
  unload(name: string, withParts: boolean): Promise<Done> {
    return this.#inTurn(async () => {
      const slot = this.#slots.get(name);
      if (!slot) return done;
      const parts = withParts ? (slot.files?.config.ensemble_scheduling?.step ?? []) : [];
      await this.#unload(slot);
      for (const part of new Set(parts.map(({ model_name }) => model_name))) {
        const target = this.#slots.get(part);
        if (target && !target.explicit && !this.#isPart(part)) await this.#unload(target);
      }
      this.#settle();
      return done;
    });
  }

  /** Reports whether a wanted ensemble uses the model. */
  #isPart(name: string): boolean {
    return [...this.#slots.values()].some(
      (slot) => slot.wanted && slot.files?.config.ensemble_scheduling?.step.some((step) => step.model_name === name),
    );
  }

  async #unload(slot: Slot): Promise<void> {
    const old = [...slot.served.values()];
    slot.wanted = false;
    slot.explicit = false;
    slot.rest('UNLOADING', '');
    this.#settleEnsembles();
    await Promise.all(old.map((one) => one.close()));
    slot.rest('UNAVAILABLE', 'unloaded');
    log('model unloaded', { model: slot.name });
  }

  /** Drains everything. */
  close(): Promise<void> {
    return this.#inTurn(async () => {
      this.#started = false;
      this.#retries.close();
      await Promise.all(this.served.map((one) => one.close()));
    });
  }
}
