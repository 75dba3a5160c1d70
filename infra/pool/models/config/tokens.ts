import { fault, type Read } from '../../../../shared/kserve/fault.ts';
import { ok } from '../../../../shared/result.ts';

/** A token of protobuf text format. Strings are unescaped; numbers keep their spelling. */
export interface Token {
  readonly kind: 'name' | 'number' | 'string' | 'mark' | 'end';
  readonly text: string;
  readonly line: number;
}

const space = /[ \t\r\n\v\f]+|#[^\n]*/y;
const name = /[A-Za-z_][A-Za-z0-9_]*/y;
const number = /(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?)/y;
const mark = /[{}<>[\]:,;-]/y;

const simple: Record<string, number> = {
  n: 10,
  r: 13,
  t: 9,
  a: 7,
  b: 8,
  f: 12,
  v: 11,
  '\\': 92,
  "'": 39,
  '"': 34,
  '?': 63,
};

/**
 * Returns the string that begins at a quote, with both quotes; `undefined` when it does not end on its line.
 */
function quotedAt(source: string, at: number): string | undefined {
  const quote = source[at];
  if (quote !== '"' && quote !== "'") return undefined;
  for (let end = at + 1; end < source.length; end++) {
    const letter = source[end];
    if (letter === quote) return source.slice(at, end + 1);
    if (letter === '\\') end++;
    if (source[end] === '\n') return undefined;
  }
  return undefined;
}

/** Unescapes a string. Escapes name bytes, so it is decoded once, at the end. */
function unescapeText(body: string): string | undefined {
  if (!body.includes('\\')) return body;
  const bytes: number[] = [];
  const encoder = new TextEncoder();
  const pattern = /\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))|[^\\]+/gsu;
  for (const match of body.matchAll(pattern)) {
    const [whole, hex, octal, short, long, one] = match;
    const point = short ?? long;
    if (hex !== undefined) bytes.push(Number.parseInt(hex, 16));
    else if (octal !== undefined) bytes.push(Number.parseInt(octal, 8) & 0xff);
    else if (point !== undefined) {
      if (Number.parseInt(point, 16) > 0x10ffff) return undefined;
      bytes.push(...encoder.encode(String.fromCodePoint(Number.parseInt(point, 16))));
    } else if (one !== undefined) {
      const code = simple[one];
      if (code === undefined) return undefined;
      bytes.push(code);
    } else for (const byte of encoder.encode(whole)) bytes.push(byte);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(new Uint8Array(bytes));
  } catch {
    return undefined;
  }
}

function match(pattern: RegExp, source: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(source)?.[0];
}

export function tokenise(source: string): Read<Token[]> {
  const tokens: Token[] = [];
  let at = 0;
  let line = 1;
  const push = (kind: Token['kind'], whole: string, value = whole): void => {
    tokens.push({ kind, text: value, line });
    at += whole.length;
  };
  while (at < source.length) {
    const blank = match(space, source, at);
    if (blank !== undefined) {
      line += blank.split('\n').length - 1;
      at += blank.length;
      continue;
    }
    const quoted = quotedAt(source, at);
    if (quoted !== undefined) {
      const value = unescapeText(quoted.slice(1, -1));
      if (value === undefined) return fault(`line ${line}: the string has an invalid escape or is not UTF-8`);
      push('string', quoted, value);
      continue;
    }
    const digits = match(number, source, at);
    const word = digits === undefined ? match(name, source, at) : undefined;
    const sign = word === undefined ? match(mark, source, at) : undefined;
    if (digits !== undefined) push('number', digits);
    else if (word !== undefined) push('name', word);
    else if (sign !== undefined) push('mark', sign);
    else return fault(`line ${line}: unexpected character ${JSON.stringify(source[at])}`);
  }
  tokens.push({ kind: 'end', text: '', line });
  return ok(tokens);
}
