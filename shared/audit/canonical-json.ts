/**
 * JSON with one way to write each value (RFC 8785): members by their UTF-16 names, no spaces, numbers as ECMAScript writes
 * them. Members that are `undefined` are left out.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) {
    if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError('a number that JSON has not');
    // A half of a surrogate pair has no UTF-8.
    if (typeof value === 'string' && !value.isWellFormed()) return JSON.stringify(value.toWellFormed());
    return JSON.stringify(value ?? null);
  }
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${canonicalJson(name)}:${canonicalJson(member)}`);
  return `{${members.join(',')}}`;
}
