import type { ModelDescription } from '../../../../shared/pool/description.ts';
import { countStream, type LiveCounts, noCounts } from '../../../../shared/registry/live-counts.ts';
import type { LiveReport } from '../../../../shared/registry/live-report.ts';
import { LIVE_REPORT_REVISIONS_MAX } from '../../../../shared/registry/live-report.ts';
import type { Result } from '../../../../shared/result.ts';
import { streamOf, type Tally } from './tally.ts';

type Named = Pick<ModelDescription, 'name' | 'revision'>;

interface Counted {
  readonly model: string;
  readonly revision: string;
  served: LiveCounts;
  mirrored: LiveCounts;
}

/** Counts of the recordings of this process, by revision. They only grow, and are lost with the process. */
export class LiveBook {
  /** The one that was counted last comes last. */
  readonly #counted = new Map<string, Counted>();

  ended({ name, revision }: Named, tally: Tally, outcome: Result<unknown>, now: number): void {
    const stream = streamOf(tally, outcome, now);
    if (!stream) return;
    const key = `${name} ${revision}`;
    const known = this.#counted.get(key) ?? { model: name, revision, served: noCounts, mirrored: noCounts };
    const what = tally.copy ? 'mirrored' : 'served';
    known[what] = countStream(known[what], stream);
    this.#counted.delete(key);
    this.#counted.set(key, known);
    const [oldest] = this.#counted.keys();
    if (oldest !== undefined && this.#counted.size > LIVE_REPORT_REVISIONS_MAX) this.#counted.delete(oldest);
  }

  /** Returns all counts, and the loaded revisions that have none yet. */
  models(described: readonly ModelDescription[]): LiveReport['models'] {
    const counted = [...this.#counted.values()].map((one) => ({ ...one }));
    const known = new Set(this.#counted.keys());
    const idle = described
      .filter(({ task, tier }) => task === 'transcribe' && tier === undefined)
      .filter(({ name, revision }) => !known.has(`${name} ${revision}`))
      .map(({ name, revision }) => ({ model: name, revision }));
    return [...counted, ...idle].slice(-LIVE_REPORT_REVISIONS_MAX);
  }
}
