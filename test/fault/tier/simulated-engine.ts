// An engine that reads the files of what it loads from the agent's folder, and dies.

import type { Engine } from '../../../infra/pool/agent/engine/engine.ts';
import { engineNames, partOf } from '../../../infra/pool/agent/loader/engine-names.ts';
import { refuse } from '../../../shared/refusal.ts';
import { no, ok } from '../../../shared/result.ts';
import { LoadingEngine } from '../../fake/loading-engine.ts';
import { sha256 } from '../../infra/agent/store/fixtures.ts';
import type { World } from '../batch/world.ts';
import type { MemoryDisk } from './memory-disk.ts';

export class SimulatedEngine extends LoadingEngine {
  readonly #world: World;
  readonly #disk: MemoryDisk;
  readonly #folder: string;
  /** Loaded models whose bytes are not those of their names. */
  readonly unverified = new Set<string>();
  /** Bytes of each loaded model. */
  readonly sizes = new Map<string, number>();
  /** Called at the start of a load. */
  onStart: (model: string) => void = () => {};
  /** Called when a load lacks a file. */
  onMissing: (model: string) => void = () => {};
  /** Called before an unload. */
  onUnloaded: (model: string) => void = () => {};
  isDown = false;
  /** Epoch ms. */
  killedAt = 0;
  /** Number of its clients so far. */
  clients = 0;
  /** Number of its processes. */
  lives = 1;

  constructor(world: World, disk: MemoryDisk, folder: string) {
    super();
    [this.#world, this.#disk, this.#folder] = [world, disk, folder];
  }

  /** Ends the process; the next one has nothing loaded. */
  kill(): void {
    this.killedAt = this.#world.now;
    this.lives += 1;
    this.isDown = true;
    for (const state of [this.models, this.unverified, this.sizes]) state.clear();
  }

  start(): void {
    this.isDown = false;
  }

  async #call(): Promise<boolean> {
    const { lives } = this;
    await this.#world.turn();
    if (this.#world.bad(0.02)) await this.#world.sleep(this.#world.between(0, 3_000));
    return !this.isDown && lives === this.lives && !this.#world.bad(0.01);
  }

  override loaded: Engine['loaded'] = async () =>
    (await this.#call()) ? ok(new Map(this.models)) : no(refuse('engine_failed'));
  override memory: Engine['memory'] = async (model) => {
    const bytes = this.sizes.get(model);
    return (await this.#call()) && bytes !== undefined ? { bytes, source: 'reported' } : undefined;
  };

  /** Reads one file after the other, and answers when it has read them all. */
  override async load(model: string): ReturnType<Engine['load']> {
    const failed = (reason: string) => no(refuse('engine_failed', undefined, reason));
    const { lives, clients } = this;
    if (!(await this.#call())) return failed('engine ECONNREFUSED');
    this.calls.push(`+${model}`);
    this.onStart(model);
    const names = [...this.#disk.files(`${this.#folder}/${model}`).keys()];
    const read = new Map<string, Buffer>();
    for (const name of names) {
      await this.#world.turn();
      const bytes = this.#disk.files(`${this.#folder}/${model}`).get(name);
      if (bytes === undefined && clients === this.clients) this.onMissing(model);
      if (bytes === undefined) return failed(`no file ${name}`);
      read.set(name, bytes);
    }
    if (names.length === 0 && clients === this.clients) this.onMissing(model);
    if (names.length === 0) return failed('no such model');
    if (this.#world.bad(0.03)) return failed('out of memory');
    if (lives !== this.lives) return failed('engine ECONNRESET');
    const part = partOf(`${model}/`).replace(/\.[0-9a-f]{12}$/, '');
    const files = [...read].map(([name, bytes]) => ({ name: `${part}/${name}`, digest: sha256(bytes) }));
    if (engineNames(files, new Map()).get(part) === model) this.unverified.delete(model);
    else this.unverified.add(model);
    this.models.set(model, { is: 'ready' });
    this.sizes.set(model, 1.5 * [...read.values()].reduce((sum, { length }) => sum + length, 0));
    // It is loaded, and its answer is lost.
    return (await this.#call()) ? ok(undefined) : failed('engine ECONNRESET');
  }

  override async unload(model: string): ReturnType<Engine['unload']> {
    const failed = no(refuse('engine_failed', undefined, 'engine ECONNREFUSED'));
    const { clients } = this;
    // Running inferences end first.
    if (this.#world.bad(0.5)) await this.#world.sleep(this.#world.between(0, 2_000));
    if (!(await this.#call())) return failed;
    if (clients === this.clients) this.onUnloaded(model);
    this.calls.push(`-${model}`);
    for (const state of [this.models, this.unverified, this.sizes]) state.delete(model);
    return (await this.#call()) ? ok(undefined) : failed;
  }
}
