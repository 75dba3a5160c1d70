import type { Queue, Waiting } from './queue.ts';

/** Longest micro window (A13): realtime, interactive and default work. */
export const MICRO_WINDOW_MS = 50;
/** Longest macro window (A13): batch work, the long recordings. */
export const MACRO_WINDOW_MS = 500;

/** How long queued utterances wait for others, so that the engine gets them as one batch. */
export interface Windows {
  readonly microMs: number;
  readonly macroMs: number;
  /** Utterances that are released before their window ends. */
  readonly batch: number;
}

/** Releases each utterance at once: the engine's own dynamic batching forms the batches. */
export const noWindows: Windows = { microMs: 0, macroMs: 0, batch: 1 };

export const isOff = ({ microMs, macroMs }: Windows): boolean => microMs <= 0 && macroMs <= 0;

export interface Released {
  /** Utterances whose window is over, in the order of the queue. */
  readonly ready: Queue;
  /** End of the next window, ms since 1970; `undefined` when no utterance waits for one. */
  readonly wakeAt: number | undefined;
}

/**
 * Splits a queue into utterances that may start and those that wait for company. A window opens with the oldest utterance
 * of its group, and ends after its length or when as many wait as fit: `batch`, and never more than `free` slots.
 */
export function release(queue: Queue, windows: Windows, free: number, now: number): Released {
  if (isOff(windows)) return { ready: queue, wakeAt: undefined };
  const enough = Math.max(1, Math.min(windows.batch, free));
  const isMacro = ({ class: name }: Waiting) => name === 'batch';
  const groups = [
    { group: queue.filter((one) => !isMacro(one)), lengthMs: windows.microMs },
    { group: queue.filter(isMacro), lengthMs: windows.macroMs },
  ];
  const ready: Waiting[] = [];
  let wakeAt: number | undefined;
  for (const { group, lengthMs } of groups) {
    const end = Math.min(...group.map(({ since = now }) => since)) + lengthMs;
    if (group.length >= enough || end <= now) ready.push(...group);
    else if (group.length > 0) wakeAt = Math.min(end, wakeAt ?? end);
  }
  return { ready, wakeAt };
}
