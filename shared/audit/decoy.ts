// What is not there is committed to, too, where its absence would tell something: a caller without a name, for one. Only
// whoever is shown the disclosure learns that it says nothing (RFC 9901 §4.2.7 has digests of nothing for the same end, which
// nobody could ever show to be that).

/** By type of event, members that its leaf commits to whether the event has them or not. */
const expected: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    'inference.attempt': ['subject'],
    'inference.complete': ['subject'],
    'inference.denied': ['subject', 'detail'],
    'token.granted': ['subject', 'grantee'],
  }),
);

/** What a leaf of that type hides, `null` in the place of what the event did not say. */
export function withDecoys(type: string, hidden: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const missing = (expected.get(type) ?? []).filter((name) => !Object.hasOwn(hidden, name));
  return { ...hidden, ...Object.fromEntries(missing.map((name) => [name, null])) };
}
