// Compares transcripts with the known words of a recording, without case and punctuation.
import path from 'node:path';
import { wordsOf } from '../../../shared/registry/compare-answers.ts';
import { readText } from '../place.ts';

/** Code of a request or stream that was answered with other words. */
export const WORDS_DIFFER = 'words_differ';

/** The words of `--expect`, else of the text beside the recording; `undefined` when neither is there. */
export function expectedWords({
  audio = '',
  expect,
}: {
  readonly audio: string | undefined;
  readonly expect: string | undefined;
}): readonly string[] | undefined {
  const { dir, name } = path.parse(audio);
  const text = expect ?? readText(path.join(dir, `${name}.txt`));
  return text === undefined ? undefined : wordsOf(text);
}

/** Passes over the recording in the reference: `count` whole ones, then at most `tail` words of a cut one. */
export interface Passes {
  readonly count: number;
  readonly tail: number;
}

/** Returns how a transcript differs, `undefined` when it does not. */
export function wordProblem(
  received: readonly string[],
  expected: readonly string[],
  { count, tail }: Passes = { count: 1, tail: 0 },
): string | undefined {
  const whole = Array.from({ length: count }, () => expected).flat();
  const at = whole.findIndex((word, index) => word !== received[index]);
  if (at >= 0) return `word ${at + 1} is "${received[at] ?? ''}", and "${whole[at]}" was expected`;
  const most = whole.length + tail;
  return received.length > most ? `${received.length} words were recognised, at most ${most} expected` : undefined;
}
