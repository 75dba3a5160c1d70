import { ok } from '../../shared/result.ts';
import { type Made, problem } from '../pool/models/problem.ts';

/** What follows a verb of `auricle model`: flags may be given more than once. */
export interface Words {
  readonly operands: readonly string[];
  readonly flags: Readonly<Record<string, readonly string[]>>;
  readonly force: boolean;
}

/** Flags that say what they say by being there. */
const switches = new Set(['static', 'watch', 'once']);

export function readWords(words: readonly string[]): Made<Words> {
  const operands: string[] = [];
  const flags: Record<string, string[]> = {};
  let force = false;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    if (word === '-f' || word === '--force') force = true;
    else if (!word.startsWith('-')) operands.push(word);
    else {
      const [, name = '', joined] = /^--([\w.-]+)(?:=(.*))?$/s.exec(word) ?? [];
      if (name === '') return problem('written', `${word} is no option`);
      const value = joined ?? (switches.has(name) ? '' : words[++at]);
      if (value === undefined) return problem('written', `--${name} needs a value`);
      flags[name] = [...(flags[name] ?? []), value];
    }
  }
  return ok({ operands, flags, force });
}

/** A flag that may be given once. */
export function one({ flags }: Words, name: string): Made<string | undefined> {
  const [value, ...more] = flags[name] ?? [];
  return more.length === 0 ? ok(value) : problem('written', `--${name} is given twice`);
}

/** `NAME=VALUE`, repeated. */
export function pairs({ flags }: Words, name: string): Made<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const written of flags[name] ?? []) {
    const at = written.indexOf('=');
    if (at < 1 || at === written.length - 1) return problem('written', `--${name} ${written}: NAME=VALUE was expected`);
    found[written.slice(0, at)] = written.slice(at + 1);
  }
  return ok(found);
}

/** Any flag but these is a mistake. */
export function onlyFlags({ flags }: Words, known: readonly string[]): Made<undefined> {
  const other = Object.keys(flags).find((name) => !known.includes(name));
  return other === undefined ? ok(undefined) : problem('written', `--${other} is no option of this verb`);
}

/** What each of these flags says, which may be given once; any but these and `others` is a mistake. */
export function readFlags<Name extends string>(
  given: Words,
  names: readonly Name[],
  others: readonly string[] = [],
): Made<Partial<Record<Name, string>>> {
  const known = onlyFlags(given, [...names, ...others]);
  if (!known.ok) return known;
  const read: Partial<Record<Name, string>> = {};
  for (const name of names) {
    const value = one(given, name);
    if (!value.ok) return value;
    if (value.value !== undefined) read[name] = value.value;
  }
  return ok(read);
}
