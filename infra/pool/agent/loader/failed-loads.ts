import { type BackOff, backOffMs } from '../../../../shared/back-off.ts';
import { MODEL_RELOAD_MAX_MS, MODEL_RELOAD_MS } from '../../../../shared/kserve/limits.ts';
import { LOAD_REASON_CHARACTERS, type LoadFailure } from '../../../../shared/pool/heartbeat.ts';
import type { Log } from '../telemetry/log.ts';

const pauses: BackOff = { firstMs: MODEL_RELOAD_MS, maxMs: MODEL_RELOAD_MAX_MS };

interface Failed {
  readonly reason: string;
  readonly count: number;
  /** Epoch ms. */
  readonly retryAt: number;
}

interface FailedLoadsOptions {
  readonly log: Log;
  /** Epoch ms. */
  readonly now: () => number;
  readonly random?: () => number;
}

/** Revisions whose last load failed, each with its reason and the time of the next try. */
export class FailedLoads {
  readonly #options: FailedLoadsOptions;
  readonly #failed = new Map<string, Failed>();

  constructor(options: FailedLoadsOptions) {
    this.#options = options;
  }

  has = (id: string): boolean => this.#failed.has(id);

  isDue = (id: string): boolean => (this.#failed.get(id)?.retryAt ?? 0) <= this.#options.now();

  list = (): LoadFailure[] => [...this.#failed].map(([id, { reason }]) => ({ model: id.split(' ')[0] ?? id, reason }));

  add(id: string, reason: string): void {
    const { now, log, random = Math.random } = this.#options;
    const known = this.#failed.get(id);
    const count = (known?.count ?? 0) + 1;
    const short = reason.slice(0, LOAD_REASON_CHARACTERS);
    const [model = id, revision = ''] = id.split(' ');
    if (known?.reason !== short) log('model-load-failed', { model, revision, detail: short, count });
    this.#failed.set(id, { reason: short, count, retryAt: now() + backOffMs(count - 1, pauses, random()) });
  }

  delete(id: string): void {
    this.#failed.delete(id);
  }

  /** Forgets revisions that are not among these. */
  keep(ids: ReadonlyMap<string, unknown>): void {
    for (const id of this.#failed.keys()) if (!ids.has(id)) this.#failed.delete(id);
  }
}
