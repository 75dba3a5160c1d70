import { AGENT_FLUSH_MS } from '../settings/limits.ts';

/** A piece of work that was admitted. */
export interface Entry {
  /** Aborts when the agent cannot wait for the work any longer. */
  readonly signal: AbortSignal;
  /** Aborts when the agent begins to stop. */
  readonly draining: AbortSignal;
  leave(): void;
}

/** Counts one kind of work in and out. */
export interface WorkCounter {
  enter(): Entry;
  /** Reports whether more is inside than fits, an entry just made included. */
  full(): boolean;
  size(): number;
  drain(): void;
  /** Resolves when the room is empty. Aborts what is inside after `milliseconds`. */
  empty(milliseconds: number): Promise<void>;
}

export function countWork(most: number): WorkCounter {
  const inside = new Set<AbortController>();
  const drain = new AbortController();
  let onEmpty = () => {};
  return {
    enter() {
      const entry = new AbortController();
      inside.add(entry);
      return {
        signal: entry.signal,
        draining: drain.signal,
        leave() {
          inside.delete(entry);
          if (inside.size === 0) onEmpty();
        },
      };
    },
    full: () => inside.size > most,
    size: () => inside.size,
    drain: () => drain.abort(),
    async empty(milliseconds) {
      if (inside.size === 0) return;
      await new Promise<void>((resolve) => {
        const abort = setTimeout(() => {
          for (const entry of inside) entry.abort();
        }, milliseconds);
        // Aborted work still sends its last record.
        const giveUp = setTimeout(resolve, milliseconds + AGENT_FLUSH_MS);
        onEmpty = () => {
          clearTimeout(abort);
          clearTimeout(giveUp);
          resolve();
        };
      });
    },
  };
}
