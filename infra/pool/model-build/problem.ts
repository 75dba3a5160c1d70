import { no, type Result } from '../../../shared/result.ts';

/** Reasons of a failed import, build or deployment. Each has an exit code of its own, for scripts. */
export const problems = {
  written: { exit: 2, means: 'the command is written wrongly' },
  unreadable: { exit: 3, means: 'a file is missing, or is not what it should be' },
  key: { exit: 4, means: 'the key is not the one that the archive was sealed with' },
  keyless: { exit: 5, means: 'the archive is sealed and no key was given, or the key reference leads nowhere' },
  damaged: { exit: 6, means: 'the bytes are not those that were written' },
  exists: { exit: 7, means: 'something is there already: -f overwrites what the same tool wrote' },
  unsafe: { exit: 8, means: 'the security scan found something that is not on its list' },
  artifact: { exit: 9, means: 'an artifact is missing, or is not one of this pipeline' },
  timing: { exit: 10, means: 'a chunk or padding is not a multiple of ms_per_timestep' },
  unsupported: { exit: 11, means: 'an option or a format that this tool does not have' },
  bound: { exit: 12, means: 'larger than a bound allows' },
  engine: { exit: 13, means: 'the engine did not answer, or not as it should' },
} as const satisfies Record<string, { exit: number; means: string }>;

export interface Problem {
  readonly kind: keyof typeof problems;
  /** Names files, options and tensors, never their contents or a key. */
  readonly text: string;
}

export type BuildResult<T> = Result<T, Problem>;

/**
 * Longest refusal, characters: names in sources can be of any length, and refusals go to terminals and logs.
 */
const LONGEST = 1_000;

export function problem(kind: Problem['kind'], text: string): { ok: false; refusal: Problem } {
  const short = text.length > LONGEST ? `${text.slice(0, LONGEST)} … (${text.length} characters)` : text;
  return no({ kind, text: short.replace(/\p{Cc}/gu, '\u{fffd}') });
}
