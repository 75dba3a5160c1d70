// One process of a simulated agent: store, engine folder and loader as they are. A killed one performs no further step.
import { Registry } from 'prom-client';
import type { Engine } from '../../../infra/pool/agent/engine/engine.ts';
import { EngineFolder } from '../../../infra/pool/agent/loader/engine-folder.ts';
import type { KnownRevision } from '../../../infra/pool/agent/loader/known-revision.ts';
import { Loader } from '../../../infra/pool/agent/loader/loader.ts';
import { createTierMetrics } from '../../../infra/pool/agent/loader/metrics.ts';
import { engineModelOf, type ServedModel } from '../../../infra/pool/agent/models/served-model.ts';
import type { Source } from '../../../infra/pool/agent/store/contract.ts';
import { FileStore } from '../../../infra/pool/agent/store/file-store.ts';
import { HEARTBEAT_MS } from '../../../shared/pool/limits.ts';
import type { FileAddresses } from '../../../shared/registry/model-files.ts';
import type { ReleaseMap } from '../../../shared/registry/release.ts';
import { digestOfFiles } from '../../../shared/registry/revision.ts';
import type { World } from '../batch/world.ts';
import type { MemoryDisk, Step } from './memory-disk.ts';
import type { ModelStore } from './model-store.ts';
import type { SimulatedEngine } from './simulated-engine.ts';

export const STORE = '/store';
export const REPOSITORY = '/engine';
const never = <T>() => new Promise<T>(() => {});
const metrics = createTierMetrics(new Registry(), () => []);
const PIECE_BYTES = 1_000;
const described = {
  task: 'transcribe',
  languages: ['en'] as string[],
  precision: 'fp32',
  stage: 'full',
  loaded: 1,
} as const;

export interface AgentParts {
  readonly world: World;
  readonly disk: MemoryDisk;
  readonly store: ModelStore;
  readonly engine: SimulatedEngine;
  readonly bytes: { readonly engine: number; readonly ram: number; readonly ssd: number };
  /** Called after each step on the disk. */
  readonly onStep: () => void;
  /** Called for a model that requests find no more. */
  readonly onWithdrawn: (name: string) => void;
}

export class AgentProcess {
  readonly #parts: AgentParts;
  readonly #stopped = new AbortController();
  /** Steps on the disk until it is killed. */
  #steps: number;
  /** Newest map that it has received. */
  map: ReleaseMap;
  mapSince: number;
  loader: Loader | undefined;
  /** Models that requests find, as of the last change. */
  served: readonly ServedModel[] = [];

  constructor(parts: AgentParts, map: ReleaseMap) {
    this.#parts = parts;
    [this.map, this.mapSince] = [map, parts.world.now];
    this.#steps = parts.world.bad(0.7) ? parts.world.between(1, 600) : Number.POSITIVE_INFINITY;
  }

  get isDead(): boolean {
    return this.#stopped.signal.aborted;
  }

  get stopped(): AbortSignal {
    return this.#stopped.signal;
  }

  kill(): void {
    this.loader?.close();
    this.#stopped.abort();
  }

  #step: Step = async (effect, partly) => {
    const { world, onStep } = this.#parts;
    await world.turn();
    if (this.isDead) return never();
    this.#steps -= 1;
    if (this.#steps > 0 || world.calm) {
      try {
        return effect();
      } finally {
        onStep();
      }
    }
    if (world.random() < 0.5) partly?.();
    else effect();
    this.kill();
    return never();
  };

  /** The engine as this process calls it. */
  #engine(): Engine {
    return new Proxy(this.#parts.engine, {
      get: (engine, name) => {
        const value: unknown = Reflect.get(engine, name);
        if (typeof value !== 'function') return value;
        return (...given: unknown[]) => (this.isDead ? never() : value.apply(engine, given));
      },
    });
  }

  async start(): Promise<void> {
    const { world, disk: memory, bytes } = this.#parts;
    const engine = this.#engine();
    const disk = memory.open(this.#step);
    const now = () => world.now;
    const store = await FileStore.open({
      ...{ folder: STORE, bytes: bytes.ssd, order: (files) => files, disk, now, signal: this.stopped },
      sleep: (ms) => world.sleep(ms),
      // One process at a time uses the store.
      every: () => () => {},
    });
    const folder = await EngineFolder.open({ folder: REPOSITORY, store, disk });
    const loader = new Loader({
      ...{ engine, store, folder, bytes, metrics, now, random: world.random, log: () => {} },
      released: () => this.map.models,
      mounted: async () => [],
      fetchReleased: (model, revision) => this.#fetch(model, revision),
      serve: async ({ description }, { names }) => ({ description, engineModel: names.get(description.name) ?? '' }),
      onChange: async () => {
        if (world.bad(0.3)) await world.sleep(world.between(0, 500));
        else await world.turn();
        if (this.isDead) return never();
        this.#show(loader.served());
      },
    });
    this.loader = loader;
    while (!this.isDead) {
      void loader.refresh().then(() => this.#show(loader.served()));
      await world.sleep(HEARTBEAT_MS);
      // The heartbeat brings the newest map, unless it is late.
      if (!world.bad(0.3) && this.#parts.store.map.generation > this.map.generation) {
        this.map = this.#parts.store.map;
        this.mapSince = world.now;
      }
    }
  }

  #show(served: readonly ServedModel[]): void {
    if (this.isDead) return;
    const names = new Set(served.map(engineModelOf));
    const left = this.served.map(engineModelOf).filter((one) => !names.has(one));
    this.served = served;
    for (const one of left) this.#parts.onWithdrawn(one);
  }

  /** Reads a revision from the functions and verifies that its files make it. */
  async #fetch(model: string, revision: string): Promise<KnownRevision> {
    const addressed = async (): Promise<FileAddresses> => {
      const answer = await this.#parts.store.addresses(model, revision);
      if (this.isDead) return never();
      if (!answer) throw new Error('the functions do not answer');
      if (!answer.ok) throw new Error(answer.refusal.reason);
      return answer.value;
    };
    const { files } = await addressed();
    if (digestOfFiles(files) !== revision) throw new Error('its files are not those it names');
    const description = { ...described, name: model, revision };
    return { digest: revision, files, description, source: this.#source(addressed) };
  }

  #source(addressed: () => Promise<FileAddresses>): Source {
    const { world, store } = this.#parts;
    const read = async function* (this: AgentProcess, { digest }: { readonly digest: string }, from: number) {
      const { url } = (await addressed()).files.find((one) => one.digest === digest) ?? {};
      if (url === undefined) throw new Error('archived');
      const bytes = Buffer.from(store.blobs.read(url) ?? '').subarray(from);
      const length = world.bad(0.1) ? world.between(0, bytes.length) : bytes.length;
      for (let at = 0; at < length; at += PIECE_BYTES) {
        await world.turn();
        if (this.isDead) return never<void>();
        if (store.isDown || world.bad(0.05)) throw new Error('ECONNRESET');
        const piece = Buffer.from(bytes.subarray(at, Math.min(at + PIECE_BYTES, length)));
        if (world.bad(0.05)) piece[0] = (piece[0] ?? 0) ^ 1;
        yield piece;
      }
    };
    return { read: (file, from) => read.call(this, file, from) };
  }

  /** Finds the name at the engine of a served revision. */
  nameOf(model: string, revision: string): string | undefined {
    const found = this.served.find(
      ({ description }) => description.name === model && description.revision === revision,
    );
    return found && engineModelOf(found);
  }
}
