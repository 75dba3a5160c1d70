import type { IndexEntry, ModelState } from '../../../../shared/kserve/repository.ts';
import { VersionStatistics } from '../batch/statistics.ts';
import { Turns } from '../ensemble/turns.ts';
import type { ModelFiles } from '../model/read-model.ts';
import type { Served } from '../model/served.ts';

/** State of one model in the repository: requested, served, and the reason of a failure. */
export class Slot {
  readonly name: string;
  /** The model was loaded at the start or by request, and not unloaded since. */
  wanted = false;
  /** The model was requested itself; otherwise it belongs to an ensemble and may be unloaded with it. */
  explicit = false;
  files: ModelFiles | undefined;
  readonly served = new Map<number, Served>();
  /** State of the whole model, while no version has one. */
  state: ModelState | undefined;
  reason = '';
  /** Order of the sequences of an ensemble. */
  readonly turns = new Turns();
  readonly #statistics = new Map<number, VersionStatistics>();

  constructor(name: string) {
    this.name = name;
  }

  statistics(version: number): VersionStatistics {
    const known = this.#statistics.get(version) ?? new VersionStatistics();
    this.#statistics.set(version, known);
    return known;
  }

  get latest(): Served | undefined {
    return this.served.get(Math.max(...this.served.keys()));
  }

  /** Enters a state in which no version is served. */
  rest(state: ModelState, reason: string): void {
    this.state = state;
    this.reason = reason;
    this.served.clear();
  }

  serve(versions: readonly Served[]): void {
    this.served.clear();
    for (const one of versions) this.served.set(one.version, one);
    this.state = 'READY';
    this.reason = '';
  }

  describe(): IndexEntry[] {
    const { name, state, reason } = this;
    if (this.served.size > 0) {
      return [...this.served.keys()].map((version) => ({ name, version: String(version), state: 'READY' as const }));
    }
    if (state === undefined) return [{ name }];
    const versions: readonly (number | undefined)[] = this.files?.versions ?? [undefined];
    return versions.map((version) => ({
      name,
      ...(version !== undefined && { version: String(version) }),
      state,
      ...(reason && { reason }),
    }));
  }

  /** False for a failed model, which makes the server unready; one unloaded on purpose does not. */
  get healthy(): boolean {
    return !this.wanted || this.served.size > 0;
  }
}
