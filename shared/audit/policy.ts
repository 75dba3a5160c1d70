// The policy of a log (C2SP tlog-policy): its keys, its witnesses and their quorum. Each reader may have its
// own; a served or exported policy is a suggestion.

import { KiB } from '../bytes.ts';
import { no, ok, type Result } from '../result.ts';
import { formatNoteKey, type NoteKey, readNoteKey } from './note-key.ts';

/** Policy of a log: 32 logs, witnesses and groups must be possible, each of a few hundred bytes. */
export const POLICY_BYTES = 256 * KiB;

export interface PolicyLog {
  readonly key: NoteKey;
  readonly url?: string;
}
export interface PolicyWitness {
  readonly name: string;
  readonly key: NoteKey;
  /** Base URL for checkpoints. */
  readonly url?: string;
}
export interface PolicyGroup {
  readonly name: string;
  /** Number of members that must have cosigned. */
  readonly needed: number;
  readonly members: readonly string[];
}
export interface Policy {
  readonly logs: readonly PolicyLog[];
  readonly witnesses: readonly PolicyWitness[];
  readonly groups: readonly PolicyGroup[];
  /** Name of a witness or a group, or `none`. */
  readonly quorum: string;
}

/** Maps octets to characters: names are compared by octets, whatever their encoding. */
const toOctets = (bytes: Uint8Array): string => Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
const fromOctets = (text: string): Uint8Array => Uint8Array.from(text, (one) => one.charCodeAt(0));

/** Parses a policy; otherwise returns its first error. */
export function readPolicy(bytes: Uint8Array): Result<Policy, string> {
  if (bytes.length > POLICY_BYTES) return no('it is too long');
  const text = toOctets(bytes);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the only ones that a policy may have are these two.
  if (/[\x00-\x08\x0b-\x1f\x7f]/.test(text)) return no('a control character');
  const draft = new Draft();
  for (const [at, line] of text.split('\n').entries()) {
    const words = line.split(/[ \t]+/).filter((word) => word !== '');
    if (words.length === 0 || words[0]?.startsWith('#')) continue;
    const wrong = draft.add(words);
    if (wrong !== undefined) return no(`line ${at + 1}: ${wrong}`);
  }
  return draft.quorum === undefined ? no('no quorum') : ok({ ...draft, quorum: draft.quorum });
}

class Draft {
  readonly logs: PolicyLog[] = [];
  readonly witnesses: PolicyWitness[] = [];
  readonly groups: PolicyGroup[] = [];
  quorum: string | undefined;
  readonly #members = new Set<string>();

  /** Parses a line; returns its error. */
  add([keyword = '', ...words]: readonly string[]): string | undefined {
    if (keyword === 'log') return this.#log(words);
    if (keyword === 'witness') return this.#witness(words);
    if (keyword === 'group') return this.#group(words);
    return keyword === 'quorum' ? this.#quorum(words) : 'no such keyword';
  }

  #log([vkey = '', url, ...rest]: readonly string[]): string | undefined {
    const key = keyIn(vkey);
    if (!key || key.type === 'cosignature' || rest.length > 0)
      return 'log <vkey> [<url>], with a key that we can check';
    if (isAmong(key, this.logs)) return 'this key is there already';
    this.logs.push({ key, ...(url !== undefined && { url }) });
    return undefined;
  }

  #witness([name = '', vkey = '', url, ...rest]: readonly string[]): string | undefined {
    const key = keyIn(vkey);
    if (key?.type !== 'cosignature' || rest.length > 0)
      return 'witness <name> <vkey> [<url>], with a key that we can check';
    if (this.#isTaken(name)) return 'this name is taken';
    if (isAmong(key, this.witnesses)) return 'this key is there already';
    this.witnesses.push({ name, key, ...(url !== undefined && { url }) });
    return undefined;
  }

  #group([name = '', threshold = '', ...members]: readonly string[]): string | undefined {
    if (name === '' || members.length === 0) return 'group <name> all|any|<k> <name>...';
    if (this.#isTaken(name)) return 'this name is taken';
    const needed = threshold === 'all' ? members.length : threshold === 'any' ? 1 : Number(threshold);
    const isNumber = threshold === 'all' || threshold === 'any' || /^[1-9]\d*$/.test(threshold);
    if (!isNumber || needed > members.length) return 'more than its members, or no number';
    for (const member of members) {
      if (member === 'none' || !this.#isTaken(member)) return `${member} is not defined before`;
      if (this.#members.has(member)) return `${member} is a member already`;
      this.#members.add(member);
    }
    this.groups.push({ name, needed, members });
    return undefined;
  }

  #quorum([name = '', ...rest]: readonly string[]): string | undefined {
    if (name === '' || rest.length > 0) return 'quorum <name>';
    if (this.quorum !== undefined) return 'a second quorum';
    if (!this.#isTaken(name)) return `${name} is not defined before`;
    this.quorum = name;
    return undefined;
  }

  #isTaken(name: string): boolean {
    return name === 'none' || [...this.witnesses, ...this.groups].some((one) => one.name === name);
  }
}

/** Detects a repeated key, which would count twice under two names. */
const isAmong = (key: NoteKey, others: readonly { readonly key: NoteKey }[]): boolean =>
  others.some((one) => toOctets(one.key.publicKey) === toOctets(key.publicKey));

/** Parses a key, whose name is text, unlike other names here. */
function keyIn(octets: string): NoteKey | undefined {
  try {
    return readNoteKey(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(fromOctets(octets)));
  } catch {
    return undefined;
  }
}

/** Formats a policy. Names and URLs are those of `readPolicy`. */
export function formatPolicy({ logs, witnesses, groups, quorum }: Policy): Uint8Array {
  const write = (...words: readonly (string | undefined)[]) =>
    `${words.filter((word) => word !== undefined).join(' ')}\n`;
  const vkey = (key: NoteKey) => toOctets(new TextEncoder().encode(formatNoteKey(key)));
  const lines = [
    ...logs.map(({ key, url }) => write('log', vkey(key), url)),
    ...witnesses.map(({ name, key, url }) => write('witness', name, vkey(key), url)),
    ...groups.map(({ name, needed, members }) => write('group', name, String(needed), ...members)),
    write('quorum', quorum),
  ];
  return fromOctets(lines.join(''));
}

/** Reports whether the named witnesses form a quorum. */
export function isQuorum({ groups, quorum }: Policy, witnesses: ReadonlySet<string>): boolean {
  const witnessed = new Set(witnesses).add('none');
  // A group's members are defined before it.
  for (const { name, needed, members } of groups) {
    if (members.filter((member) => witnessed.has(member)).length >= needed) witnessed.add(name);
  }
  return witnessed.has(quorum);
}
