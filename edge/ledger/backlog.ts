import type { GateStep } from './gate-step.ts';

/**
 * Events that an isolate buffers for one unreachable gate; beyond it a buffered tenant is treated like a
 * strict one.
 */
export const STRAINED_EVENTS = 250;
/**
 * Time events may wait in an isolate for an unreachable gate; then a buffered tenant is treated like a strict
 * one.
 */
export const STRAINED_MS = 300_000;
/** Events an isolate buffers for all unreachable gates, about 1 MiB; then the oldest go, with a gap event. */
const BACKLOG_EVENTS_MAX = 1_000;

interface Kept {
  readonly steps: GateStep[];
  /** Number of dropped events. */
  lost: number;
}

/**
 * Steps for unreachable Gates by name, oldest name first. Repeating a step is harmless: a slot is released
 * once however often it is settled, and events have ids. Plain data, bounded over all names together. At the
 * bound the oldest steps are dropped; a dropped settle releases its slot when the lease ends.
 */
export class Backlog {
  readonly #kept = new Map<string, Kept>();
  /** Time since which a Gate has not taken all of its steps, epoch ms. */
  readonly #since = new Map<string, number>();
  readonly #bound: number;
  #size = 0;
  /** Events lost of Gates without steps here. */
  #forgotten = 0;

  constructor(bound: number = BACKLOG_EVENTS_MAX) {
    this.#bound = bound;
  }

  get size(): number {
    return this.#size;
  }

  keep(name: string, steps: readonly GateStep[], now = 0): void {
    // A slot that was not taken in time belongs to another request.
    const worth = steps.filter((step) => step.kind === 'settle' || step.events.length > 0 || reportsUsage(step));
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

  /** Removes and returns a Gate's steps, and the number of events lost before. The caller owns them. */
  take(name: string): Kept | undefined {
    const kept = this.#kept.get(name);
    if (!kept) return undefined;
    this.#kept.delete(name);
    this.#size -= 1 + kept.steps.reduce((sum, step) => sum + weight(step), 0);
    return kept;
  }

  /** Records that the Gate received the taken steps. */
  delivered(name: string): void {
    if (!this.#kept.has(name)) this.#since.delete(name);
  }

  /** Reports a Gate with so many steps, or such old ones, that buffered mode must stop. */
  isStrained(name: string, now: number): boolean {
    const since = this.#since.get(name);
    if (since === undefined) return false;
    const kept = this.#kept.get(name);
    const events = kept?.steps.reduce((sum, step) => sum + step.events.length, kept.lost) ?? 0;
    return events > STRAINED_EVENTS || now - since > STRAINED_MS;
  }

  /** Returns the lost events without a Gate of their own. The caller must report them. */
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

/** Reports a step that informs the Gate, beyond a request for a reserve. */
const reportsUsage = (step: GateStep): boolean =>
  step.kind === 'report' && step.report.spent + step.report.ended.length + step.report.audioSeconds > 0;

/** Cost of a step: its events, at least 1. */
const weight = (step: GateStep): number => Math.max(1, step.events.length);
