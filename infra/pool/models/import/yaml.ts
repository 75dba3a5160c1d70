import { limits } from '../../../../shared/limits.ts';
import { ok } from '../../../../shared/result.ts';
import { type Made, problem } from '../problem.ts';

export type Yaml = null | boolean | number | string | Yaml[] | { [key: string]: Yaml };

interface Line {
  readonly number: number;
  readonly indent: number;
  readonly text: string;
}

/**
 * The YAML of a model_config.yaml: maps, lists, scalars, lists and maps on one line, texts over several lines. Anchors,
 * tags, several documents and whatever else YAML has are refused: what is not understood must not be guessed.
 */
export function readYaml(source: string, name: string): Made<Yaml> {
  if (source.length > limits.modelYamlCharacters.value)
    return problem('bound', `${name} has ${source.length} characters`);
  try {
    const lines = linesOf(source);
    const reader = new Reader(lines);
    const value = lines.length === 0 ? null : reader.block(lines[0]?.indent ?? 0);
    if (reader.next) throw new Refused(reader.next.number, 'is indented as nothing before it');
    return ok(value);
  } catch (error) {
    if (error instanceof Refused) return problem('unreadable', `${name}, line ${error.line}: ${error.message}`);
    throw error;
  }
}

class Refused extends Error {
  readonly line: number;
  constructor(line: number, message: string) {
    super(message);
    this.line = line;
  }
}

function linesOf(source: string): Line[] {
  const lines: Line[] = [];
  for (const [index, written] of source.split(/\r?\n/).entries()) {
    const text = withoutComment(written).trimEnd();
    if (text.trim() === '' || (index === 0 && text === '---')) continue;
    if (/^\s*\t/.test(text)) throw new Refused(index + 1, 'is indented with a tab');
    if (/^(---|\.\.\.|%)/.test(text)) throw new Refused(index + 1, 'begins another document');
    lines.push({ number: index + 1, indent: text.length - text.trimStart().length, text: text.trim() });
  }
  return lines;
}

/** Cuts a comment off: a hash at the start or behind a space, outside of quotes. */
function withoutComment(line: string): string {
  let quote = '';
  for (let at = 0; at < line.length; at++) {
    const letter = line[at] as string;
    if (quote !== '') {
      if (letter === '\\' && quote === '"') at++;
      else if (letter === quote) quote = '';
    } else if ((letter === '"' || letter === "'") && /^[\s[{,:-]?$/.test(line.charAt(at - 1))) quote = letter;
    else if (letter === '#' && /^\s?$/.test(line.charAt(at - 1))) return line.slice(0, at);
  }
  return line;
}

class Reader {
  readonly #lines: Line[];
  #at = 0;
  #depth = 0;
  constructor(lines: Line[]) {
    this.#lines = lines;
  }
  get next(): Line | undefined {
    return this.#lines[this.#at];
  }

  block(indent: number): Yaml {
    const line = this.next;
    if (!line) return null;
    if (++this.#depth > limits.modelYamlDepth.value) throw new Refused(line.number, 'is nested too deeply');
    const value = isItem(line.text) ? this.#list(indent) : keyOf(line.text) ? this.#map(indent) : this.#scalar(indent);
    this.#depth--;
    return value;
  }

  #list(indent: number): Yaml[] {
    const list: Yaml[] = [];
    for (let line = this.next; line && line.indent === indent && isItem(line.text); line = this.next) {
      const rest = line.text.slice(1).trimStart();
      if (rest === '') {
        this.#at++;
        list.push(this.next && this.next.indent > indent ? this.block(this.next.indent) : null);
        continue;
      }
      // `- key: value` is a map that begins behind the dash.
      const inner = line.text.length - rest.length;
      this.#lines[this.#at] = { ...line, indent: indent + inner, text: rest };
      list.push(this.block(indent + inner));
    }
    return list;
  }

  #map(indent: number): { [key: string]: Yaml } {
    const map: [string, Yaml][] = [];
    const seen = new Set<string>();
    for (let line = this.next; line && line.indent === indent && !isItem(line.text); line = this.next) {
      const split = keyOf(line.text);
      if (!split) throw new Refused(line.number, 'is no key with a value');
      if (seen.has(split.key)) throw new Refused(line.number, `gives ${split.key} twice`);
      seen.add(split.key);
      map.push([split.key, this.#value(split.rest, indent, line)]);
    }
    return Object.fromEntries(map);
  }

  /** What stands behind a colon, or below it. */
  #value(rest: string, indent: number, line: Line): Yaml {
    this.#at++;
    const below = this.next;
    if (rest === '') {
      if (!below) return null;
      if (below.indent > indent) return this.block(below.indent);
      return below.indent === indent && isItem(below.text) ? this.block(indent) : null;
    }
    if (/^[|>][+-]?$/.test(rest)) return this.#folded(rest, indent);
    return scalarOf(this.#joined(rest, indent), line.number);
  }

  /** A text or a list that goes on over the following, deeper lines. */
  #joined(first: string, indent: number): string {
    const texts = [first];
    for (let line = this.next; line && line.indent > indent; line = this.next) {
      if (!/^["'[{]/.test(first) && keyOf(line.text)) throw new Refused(line.number, 'is a key below a text');
      texts.push(line.text);
      this.#at++;
    }
    return texts.join(' ');
  }

  #folded(mark: string, indent: number): string {
    const lines: string[] = [];
    for (let line = this.next; line && line.indent > indent; line = this.next) {
      lines.push(line.text);
      this.#at++;
    }
    const text = lines.join(mark.startsWith('|') ? '\n' : ' ');
    return mark.endsWith('-') ? text : `${text}\n`;
  }

  #scalar(indent: number): Yaml {
    const line = this.next as Line;
    this.#at++;
    return scalarOf(this.#joined(line.text, indent), line.number);
  }
}

const isItem = (text: string): boolean => text === '-' || text.startsWith('- ');

function keyOf(text: string): { key: string; rest: string } | undefined {
  const first = text.charAt(0);
  let end = first === '"' || first === "'" ? endOfQuoted(text, 0) : text.search(/[:#]/);
  if (end < 1 || '[]{}&*!|>%@`#,'.includes(first)) return undefined;
  const key = text.slice(0, end).trimEnd();
  while (text[end] === ' ' || text[end] === '\t') end++;
  if (text[end] !== ':' || !/^\s?$/.test(text.charAt(end + 1))) return undefined;
  return { key: String(scalarOf(key, 0)), rest: text.slice(end + 1).trim() };
}

/** Behind the quote that ends the text which begins there; -1 when none does. */
function endOfQuoted(text: string, from: number): number {
  const quote = text[from];
  for (let at = from + 1; at < text.length; at++) {
    if (quote === '"' && text[at] === '\\') at++;
    else if (text[at] !== quote) continue;
    else if (quote === "'" && text[at + 1] === quote) at++;
    else return at + 1;
  }
  return -1;
}

function scalarOf(text: string, line: number): Yaml {
  const flow = new FlowReader(text, line);
  const value = flow.value('');
  if (!flow.done) throw new Refused(line, `goes on behind a value: ${text.slice(0, 40)}`);
  return value;
}

/** Values on one line, `[a, {b: c}]` among them. */
class FlowReader {
  readonly #text: string;
  readonly #line: number;
  #at = 0;
  #depth = 0;
  constructor(text: string, line: number) {
    this.#text = text;
    this.#line = line;
  }
  get done(): boolean {
    this.#skip();
    return this.#at >= this.#text.length;
  }
  #skip(): void {
    while (this.#text[this.#at] === ' ') this.#at++;
  }
  #refuse(why: string): never {
    throw new Refused(this.#line, why);
  }

  value(ends: string): Yaml {
    this.#skip();
    const first = this.#text[this.#at] ?? '';
    if (first === '[' || first === '{') {
      if (++this.#depth > limits.modelYamlDepth.value) this.#refuse('is nested too deeply');
      const inner = first === '[' ? this.#list() : this.#map();
      this.#depth--;
      return inner;
    }
    if (first === '"' || first === "'") return this.#quoted(first);
    if (first !== '' && '&*!|>%@`'.includes(first)) this.#refuse(`uses "${first}", which this reader does not know`);
    const from = this.#at;
    while (this.#at < this.#text.length && !ends.includes(this.#text[this.#at] as string)) this.#at++;
    return plainOf(this.#text.slice(from, this.#at).trim());
  }

  #list(): Yaml[] {
    const list: Yaml[] = [];
    this.#at++;
    for (;;) {
      this.#skip();
      if (this.#text[this.#at] === ']') break;
      list.push(this.value(',]'));
      this.#between(']');
    }
    this.#at++;
    return list;
  }

  #map(): { [key: string]: Yaml } {
    const map: [string, Yaml][] = [];
    this.#at++;
    for (;;) {
      this.#skip();
      if (this.#text[this.#at] === '}') break;
      const key = this.value(':,}');
      if (this.#text[this.#at] !== ':') this.#refuse('has a map without a value');
      this.#at++;
      map.push([String(key), this.value(',}')]);
      this.#between('}');
    }
    this.#at++;
    return Object.fromEntries(map);
  }

  #between(end: string): void {
    this.#skip();
    if (this.#text[this.#at] === ',') this.#at++;
    else if (this.#text[this.#at] !== end) this.#refuse('has a list or map that does not end');
  }

  #quoted(quote: string): string {
    const end = endOfQuoted(this.#text, this.#at);
    if (end < 0) this.#refuse('has a text that does not end');
    const body = this.#text.slice(this.#at + 1, end - 1);
    this.#at = end;
    if (quote === "'") return body.replaceAll("''", "'");
    try {
      return JSON.parse(`"${body.replace(/\\x([0-9a-fA-F]{2})/g, '\\u00$1')}"`) as string;
    } catch {
      this.#refuse('has an escape this reader does not know');
    }
  }
}

function plainOf(text: string): Yaml {
  if (/^(~|null|Null|NULL)?$/.test(text)) return null;
  if (/^(true|True|TRUE)$/.test(text)) return true;
  if (/^(false|False|FALSE)$/.test(text)) return false;
  return /^[-+]?(\d+(?:\.\d*)?|\.\d+)([eE][-+]?\d+)?$/.test(text) ? Number(text) : text;
}

/** The value at a path of keys, if it is there. */
export function at(value: Yaml | undefined, ...keys: readonly string[]): Yaml | undefined {
  let found = value;
  for (const key of keys) {
    if (typeof found !== 'object' || found === null || Array.isArray(found) || !Object.hasOwn(found, key))
      return undefined;
    found = found[key];
  }
  return found;
}
