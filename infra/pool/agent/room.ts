import { limits } from '../../../shared/limits.ts';

/** One piece of work that was let in. */
export interface Entry {
  /** Aborts when the agent cannot wait for it any longer. */
  readonly signal: AbortSignal;
  leave(): void;
}

/** Counts one kind of work in and out. */
export interface Room {
  /** `onDrain` is called when the agent begins to stop. */
  enter(onDrain?: () => void): Entry;
  /** More are inside than there is room for, whoever asks included. */
  full(): boolean;
  size(): number;
  drain(): void;
  /** Resolves once nobody is inside, or after `milliseconds`, when those inside are sent away. */
  empty(milliseconds: number): Promise<void>;
}

export function openRoom(most: number): Room {
  const inside = new Map<AbortController, () => void>();
  let onEmpty = () => {};
  return {
    enter(onDrain = () => {}) {
      const entry = new AbortController();
      inside.set(entry, onDrain);
      return {
        signal: entry.signal,
        leave() {
          inside.delete(entry);
          if (inside.size === 0) onEmpty();
        },
      };
    },
    full: () => inside.size > most,
    size: () => inside.size,
    drain() {
      for (const onDrain of inside.values()) onDrain();
    },
    async empty(milliseconds) {
      if (inside.size === 0) return;
      await new Promise<void>((resolve) => {
        const late = setTimeout(() => {
          for (const entry of inside.keys()) entry.abort();
        }, milliseconds);
        // Those sent away still get their last record out.
        const tooLate = setTimeout(resolve, milliseconds + limits.agentGoodbyeMs.value);
        onEmpty = () => {
          clearTimeout(late);
          clearTimeout(tooLate);
          resolve();
        };
      });
    },
  };
}
