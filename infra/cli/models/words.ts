import { ok } from '../../../shared/result.ts';
import { type BuildResult, problem } from '../../pool/model-build/problem.ts';
import type { Option } from '../options.ts';

/** The words after a verb of `auricle model`. Flags may repeat. */
export interface Words {
  readonly operands: readonly string[];
  readonly flags: Readonly<Record<string, readonly string[]>>;
  readonly force: boolean;
}

/** Reads the words of a command by the options of its row; `open`: others may follow, each with a value. */
export function readWords(
  words: readonly string[],
  own: Readonly<Record<string, Option>>,
  open = false,
): BuildResult<Words> {
  const operands: string[] = [];
  const flags: Record<string, string[]> = {};
  let force = false;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    if (word === '-f' || word === '--force') force = true;
    else if (!word.startsWith('-')) operands.push(word);
    else {
      const [, name = '', joined] = /^--([\w.-]+)(?:=(.*))?$/s.exec(word) ?? [];
      const option = Object.hasOwn(own, name) ? own[name] : undefined;
      if (name === '' || (!option && !open)) return problem('written', `${word} is not an option of this command`);
      const value = joined ?? (option && option.value === undefined ? '' : words[++at]);
      if (value === undefined) return problem('written', `--${name} needs a value`);
      flags[name] = [...(flags[name] ?? []), value];
    }
  }
  return ok({ operands, flags, force });
}

/** A flag that may be given once. */
export function one({ flags }: Words, name: string): BuildResult<string | undefined> {
  const [value, ...more] = flags[name] ?? [];
  return more.length === 0 ? ok(value) : problem('written', `--${name} is given twice`);
}

/** `NAME=VALUE`, repeated. */
export function pairs({ flags }: Words, name: string): BuildResult<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const written of flags[name] ?? []) {
    const at = written.indexOf('=');
    if (at < 1 || at === written.length - 1) return problem('written', `--${name} ${written}: NAME=VALUE was expected`);
    found[written.slice(0, at)] = written.slice(at + 1);
  }
  return ok(found);
}

/** Returns the values of flags that are given at most once. Refuses any flag but these and `others`. */
export function readFlags<Name extends string>(
  given: Words,
  names: readonly Name[],
  others: readonly string[] = [],
): BuildResult<Partial<Record<Name, string>>> {
  const other = Object.keys(given.flags).find((name) => ![...names, ...others].includes(name));
  if (other !== undefined) return problem('written', `--${other} cannot be combined with the others`);
  const read: Partial<Record<Name, string>> = {};
  for (const name of names) {
    const value = one(given, name);
    if (!value.ok) return value;
    if (value.value !== undefined) read[name] = value.value;
  }
  return ok(read);
}
