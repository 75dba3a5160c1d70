// Lives of producers: which have begun, which have ended, and which need not be remembered any more. A life is a run of
// numbers; the outboxes of the edge have one at a time and begin the next when the log has all of the one before. Processes
// of the functions have as many as there are processes.
import type { LeafDraft } from '../../../shared/audit/leaf.ts';
import { PRODUCER_GONE_MS } from '../limits.ts';
import { counterOf, type LogState } from '../log/log-state.ts';

/**
 * Time the counts of an outbox's ended life are stored: longer than one of its deliveries can be in transit.
 */
export const OUTBOX_ENDED_MS = 3_600_000;
/** Silence that reports an open producer as failing: three times PRODUCER_IDLE_MS. */
export const PRODUCER_SILENT_MS = 1_800_000;
/**
 * Time the last life of an outbox is stored after its end: an outbox cut off for a month has nothing left to
 * query.
 */
export const OUTBOX_FORGOTTEN_MS = 30 * 86_400_000;

/** A life that ended without saying so. */
export interface Broken {
  readonly epoch: string;
  /** The first number that is missing, if there was one. */
  readonly from: number;
}

/** Producers of the functions: processes run side by side, and a crash sends no event. */
export const isMany = (producer: string): boolean => producer.startsWith('functions/');

/** Applies an event to a life. Returns the earlier life when it was interrupted with an unknown remainder. */
export function noteLife(
  { lives, upTo }: { readonly lives: Record<string, number>; readonly upTo: Readonly<Record<string, number>> },
  from: { readonly p: string; readonly ep: string },
  draft: LeafDraft,
  now: number,
): Broken | undefined {
  const counter = counterOf(from.p, from.ep);
  if (draft.type === 'producer.close') lives[counter] = -now;
  else if (isMany(from.p) && counter in lives) lives[counter] = now;
  if (draft.type !== 'producer.open') return undefined;
  lives[counter] = now;
  const { previous } = draft as { readonly previous?: unknown };
  const named = typeof previous === 'string' ? counterOf(from.p, previous) : undefined;
  if (named !== undefined && named in upTo) lives[named] = -now;
  if (isMany(from.p)) return undefined;
  const [open] = othersOf(upTo, from.p, counter).filter((one) => (lives[one] ?? 0) > 0);
  if (open === undefined) return undefined;
  lives[open] = -now;
  return { epoch: open.slice(from.p.length + 1), from: (upTo[open] ?? 0) + 1 };
}

const othersOf = (upTo: Readonly<Record<string, number>>, producer: string, counter: string): string[] =>
  Object.keys(upTo).filter((one) => one !== counter && one.slice(0, one.lastIndexOf(' ')) === producer);

/** An epoch of the functions that the log has ended, because it was silent for too long. */
export interface Silent {
  readonly outbox: string;
  readonly epoch: string;
  /** The last number that the log has of it. */
  readonly last: number;
}

/** Closes the epochs of silent processes; a later event opens its epoch again. */
export function endSilent(
  lives: Record<string, number>,
  upTo: Readonly<Record<string, number>>,
  now: number,
): Silent[] {
  const ended: Silent[] = [];
  for (const [counter, at] of Object.entries(lives)) {
    const [outbox, epoch] = partsOf(counter);
    if (at <= 0 || !isMany(outbox) || now - at < PRODUCER_GONE_MS) continue;
    lives[counter] = -now;
    ended.push({ outbox, epoch, last: upTo[counter] ?? 0 });
  }
  return ended;
}

/**
 * Drops the counters of epochs that ended so long ago that none of their events can be in flight. The last
 * epoch of an outbox stays longer: its outbox may still lack the acknowledgement.
 */
export function forgetLives(lives: Record<string, number>, upTo: Record<string, number>, now: number): void {
  const old = Object.entries(lives).filter(([, at]) => at <= 0 && now + at >= OUTBOX_ENDED_MS);
  if (old.length === 0) return;
  const left = new Map<string, number>();
  for (const counter of Object.keys(upTo)) {
    const [producer] = partsOf(counter);
    left.set(producer, (left.get(producer) ?? 0) + 1);
  }
  for (const [counter, at] of old) {
    const [producer] = partsOf(counter);
    const others = (left.get(producer) ?? 0) > 1;
    if (!isMany(producer) && !others && now + at < OUTBOX_FORGOTTEN_MS) continue;
    if (counter in upTo) left.set(producer, (left.get(producer) ?? 0) - 1);
    delete lives[counter];
    delete upTo[counter];
  }
}

const partsOf = (counter: string): readonly [producer: string, epoch: string] => {
  const cut = counter.lastIndexOf(' ');
  return [counter.slice(0, cut), counter.slice(cut + 1)];
};

/** Watches for open producers that send nothing for too long, from the start of this process on. */
export class LifeWatch {
  readonly #seen = new Map<string, { readonly upTo: number; readonly at: number }>();

  /** Number of silent producers. */
  silent({ upTo, lives = {} }: Pick<LogState, 'upTo' | 'lives'>, now: number): number {
    let silent = 0;
    const open = Object.entries(lives).filter(([, at]) => at > 0);
    for (const counter of this.#seen.keys()) if ((lives[counter] ?? 0) <= 0) this.#seen.delete(counter);
    for (const [counter] of open) {
      const [known, count] = [this.#seen.get(counter), upTo[counter] ?? 0];
      if (known?.upTo !== count) this.#seen.set(counter, { upTo: count, at: now });
      else if (now - known.at >= PRODUCER_SILENT_MS) silent += 1;
    }
    return silent;
  }
}
