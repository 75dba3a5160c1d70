import { no, type Result } from '../../../shared/result.ts';

/** Reasons of a failed import, build or deployment. Each has an exit code of its own, for scripts. */
export const problems = {
  written: { exit: 2, means: 'the command line is not valid' },
  unreadable: { exit: 3, means: 'a file is missing or malformed' },
  key: { exit: 4, means: 'the key is not that of the archive' },
  keyless: { exit: 5, means: 'the archive is sealed and no key was given, or the key cannot be read' },
  damaged: { exit: 6, means: 'the archive is damaged' },
  exists: { exit: 7, means: 'the target exists: -f overwrites what the same tool wrote' },
  unsafe: { exit: 8, means: 'the security scan found content that it does not allow' },
  artifact: { exit: 9, means: 'an artifact is missing, or is not one of this pipeline' },
  timing: { exit: 10, means: 'a chunk or padding is not a multiple of ms_per_timestep' },
  unsupported: { exit: 11, means: 'the option or format is not supported' },
  bound: { exit: 12, means: 'the input is over a bound' },
  engine: { exit: 13, means: 'the engine did not answer, or not as specified' },
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
