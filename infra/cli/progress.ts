// The progress of a long command on one line of a terminal, and its end by Ctrl-C.
import process from 'node:process';

/** A terminal, or what stands in its place. */
export interface Screen {
  readonly isTTY?: boolean;
  write(text: string): void;
}

/** A terminal is written to this often at most, in milliseconds: it must not cost what is measured. */
const WRITE_MS = 200;

export interface Progress {
  /** Shows a text instead of the one before; nothing where there is no terminal. */
  show(text: string): void;
  /** Takes the line away. */
  clear(): void;
}

export function createProgress(screen: Screen, now: () => number = () => performance.now()): Progress {
  let last = Number.NEGATIVE_INFINITY;
  let shown = false;
  return {
    show(text) {
      if (!screen.isTTY || now() - last < WRITE_MS) return;
      last = now();
      shown = true;
      screen.write(`\r\u001b[2K${text}`);
    },
    clear() {
      if (shown) screen.write('\r\u001b[2K');
      shown = false;
    },
  };
}

/** Returns a signal that the first Ctrl-C aborts; the second one ends the process. */
export function untilInterrupted(): AbortSignal {
  const interrupt = new AbortController();
  process.once('SIGINT', () => interrupt.abort());
  return interrupt.signal;
}

/** Exit code of a command that Ctrl-C ended. */
export const INTERRUPTED = 130;

/** The runtime of a load run, which tests replace. */
export interface Watched {
  readonly signal?: AbortSignal;
  readonly screen?: Screen;
}

export const noScreen: Screen = { write() {} };
