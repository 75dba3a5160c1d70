// Commitments to absent members whose absence would reveal something, such as a caller without a name. Only a
// disclosure reveals the absence (RFC 9901 §4.2.7 has decoy digests, which cannot be disclosed).

/** Event type → members that its leaf commits to, present or absent. */
const expected: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    'inference.attempt': ['subject'],
    'inference.complete': ['subject'],
    'inference.denied': ['subject', 'detail'],
    'token.granted': ['subject', 'grantee'],
  }),
);

/** Returns the hidden members of an event, `null` for absent ones. */
export function withDecoys(type: string, hidden: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const missing = (expected.get(type) ?? []).filter((name) => !Object.hasOwn(hidden, name));
  return { ...hidden, ...Object.fromEntries(missing.map((name) => [name, null])) };
}
