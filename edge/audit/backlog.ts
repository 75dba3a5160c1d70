import { limits } from '../../shared/limits.ts';
import type { GateStep } from '../tenant/gate-step.ts';

interface Kept {
  readonly steps: GateStep[];
  /** Events that had to go. */
  lost: number;
}

/**
 * Steps whose gate could not be reached, by its name, oldest name first. Repeating one is harmless: a place is given
 * back once, whatever the number of settles, and events have ids. Plain data, bounded over all names together: beyond
 * it the oldest go, a settle among them gives its place back by the end of its lease.
 */
export class Backlog {
  readonly #kept = new Map<string, Kept>();
  /** Since when a gate has not heard all that was kept for it, ms since 1970. */
  readonly #since = new Map<string, number>();
  readonly #bound: number;
  #size = 0;
  /** Events lost of gates of which nothing is left here. */
  #forgotten = 0;

  constructor(bound: number = limits.auditBacklogEvents.value) {
    this.#bound = bound;
  }

  get size(): number {
    return this.#size;
  }

  keep(name: string, steps: readonly GateStep[], now = 0): void {
    // A place that was not kept in time has gone to somebody else.
    const worth = steps.filter((step) => step.kind === 'settle' || step.events.length > 0 || tells(step));
    if (worth.length === 0) return;
    if (!this.#since.has(name)) this.#since.set(name, now);
    const kept = this.#kept.get(name) ?? { steps: [], lost: 0 };
    if (!this.#kept.has(name)) this.#size += 1;
    this.#kept.set(name, kept);
    for (const step of worth) {
      kept.steps.push(step);
      this.#size += weight(step);
    }
    while (this.#size > this.#bound && this.#loseOldest());
  }

  /** What waits for a gate, and how many events were lost before. From now on it is the caller's. */
  take(name: string): Kept | undefined {
    const kept = this.#kept.get(name);
    if (!kept) return undefined;
    this.#kept.delete(name);
    this.#size -= 1 + kept.steps.reduce((sum, step) => sum + weight(step), 0);
    return kept;
  }

  /** The gate has heard what was taken. */
  heard(name: string): void {
    if (!this.#kept.has(name)) this.#since.delete(name);
  }

  /** Whether so much waits for a gate, or for so long, that nothing more may be begun on trust. */
  isStrained(name: string, now: number): boolean {
    const since = this.#since.get(name);
    if (since === undefined) return false;
    const { auditStrainedEvents, auditStrainedMs } = limits;
    const kept = this.#kept.get(name);
    const events = kept?.steps.reduce((sum, step) => sum + step.events.length, kept.lost) ?? 0;
    return events > auditStrainedEvents.value || now - since > auditStrainedMs.value;
  }

  /** Events lost that no gate of their own will ever hear of. From now on they are the caller's to report. */
  takeForgotten(): number {
    const forgotten = this.#forgotten;
    this.#forgotten = 0;
    return forgotten;
  }

  #loseOldest(): boolean {
    const [oldest] = this.#kept;
    if (!oldest) return false;
    const [name, kept] = oldest;
    const step = kept.steps.shift();
    if (step) {
      kept.lost += step.events.length;
      this.#size -= weight(step);
    } else {
      this.#kept.delete(name);
      this.#since.delete(name);
      this.#forgotten += kept.lost;
      this.#size -= 1;
    }
    return true;
  }
}

/** A report of something, and not only of a wish. */
const tells = (step: GateStep): boolean =>
  step.kind === 'report' && step.report.spent + step.report.ended.length + step.report.audioSeconds > 0;

/** A step costs what its events cost, and something without any. */
const weight = (step: GateStep): number => Math.max(1, step.events.length);
