/**
 * Serialises canonical JSON (RFC 8785): members sorted by UTF-16 name, no spaces, numbers as ECMAScript
 * formats them. Omits `undefined` members.
 */
export function canonicalJson(value: unknown): string {
  if (typeof value === 'string') return textOf(value);
  if (typeof value === 'object' && isInOrder(value, DEPTH)) {
    const text = JSON.stringify(value);
    // Possibly a lone surrogate, or text that looks like one.
    if (!text.includes('\\ud')) return text;
  }
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) {
    if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError('a number that JSON has not');
    return JSON.stringify(value ?? null);
  }
  let members = '';
  for (const name of namesOf(value)) {
    const member = (value as Readonly<Record<string, unknown>>)[name];
    if (member !== undefined) members += `${members === '' ? '' : ','}${textOf(name)}:${canonicalJson(member)}`;
  }
  return `{${members}}`;
}

/** Nesting limit of the whole-value check, which each level would repeat. */
const DEPTH = 6;

/** Reports whether the platform's faster JSON output is canonical except for lone surrogates. */
function isInOrder(value: unknown, depth: number): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object' || value === null) return typeof value !== 'bigint' && typeof value !== 'function';
  if (depth === 0 || 'toJSON' in value) return false;
  if (Array.isArray(value)) return value.every((one) => isInOrder(one, depth - 1));
  let before = '';
  for (const name of Object.keys(value)) {
    if (name < before || !isInOrder((value as Readonly<Record<string, unknown>>)[name], depth - 1)) return false;
    before = name;
  }
  return true;
}

/** Replaces lone surrogates, which have no UTF-8. */
const textOf = (text: string): string => JSON.stringify(text.isWellFormed() ? text : text.toWellFormed());

/** Most values were parsed from canonical text and have their members in order. */
function namesOf(value: object): string[] {
  const names = Object.keys(value);
  for (let at = 1; at < names.length; at += 1) {
    if ((names[at - 1] as string) > (names[at] as string)) return names.sort();
  }
  return names;
}
