/** A bug as a log may show it: its class and where it happened. */
export interface Bug {
  readonly name: string;
  /** The innermost frames, ` | ` between them. */
  readonly place: string;
}

/** Leaves out the message, which may quote what the code was working on. Anything can be thrown, so anything goes. */
export function describeBug(error: unknown): Bug {
  if (!(error instanceof Error)) return { name: typeof error, place: '' };
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at \S/.test(line));
  return {
    name: error.name,
    place: frames
      .slice(0, 4)
      .map((line) => line.trim())
      .join(' | '),
  };
}
