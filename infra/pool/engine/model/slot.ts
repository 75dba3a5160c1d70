import type { IndexEntry, ModelState } from '../../../../shared/kserve/repository.ts';
import type { ModelFiles } from './read-model.ts';
import type { Served } from './served.ts';
import { VersionStatistics } from './statistics.ts';

/** What the repository knows of one model: what was asked of it, what it serves, and why it does not. */
export class Slot {
  readonly name: string;
  /** Whether someone wants it served: loaded at the start or by request, and not unloaded since. */
  wanted = false;
  /** Somebody asked for this very model; otherwise it came as a part of an ensemble and may go with it. */
  asked = false;
  /** The configuration of the last load, as JSON; `undefined`: that of the file. */
  override: string | undefined;
  files: ModelFiles | undefined;
  readonly served = new Map<number, Served>();
  /** Of the model as a whole, while no version speaks for itself. */
  state: ModelState | undefined;
  reason = '';
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

  /** Puts the model into a state in which no version is served. */
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

  /** A model that was unloaded on purpose does not make the server unready; one that failed does. */
  get healthy(): boolean {
    return !this.wanted || this.served.size > 0;
  }
}
