// Members of an event that its leaf has in the clear. All others are commitments: identities, free text, and
// values rare or guessable enough to identify a request.

/** Events of inference, of all versions: the names of these members are permanent. */
const inference = new Set([
  ...['action', 'class', 'model', 'language', 'status', 'reason', 'revision', 'agent', 'suppressed', 'scope'],
  ...['expires', 'attempt', 'pool', 'zone', 'why', 'outcome', 'from', 'to', 'time', 'suite', 'lost', 'oversize'],
]);

/** Other events by type; `oversize` applies to all. */
const byType: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    'producer.open': ['previous', 'previousLast'],
    'producer.close': ['last'],
    'inference.unknown': ['action', 'class', 'heard'],
    'export.create': ['export', 'format', 'redaction', 'from', 'range'],
    'export.read': ['export', 'action', 'count'],
    'access.audit': ['action', 'zone', 'count', 'since'],
    'erasure.exec': ['outcome', 'erased', 'count', 'basis', 'waits', 'until'],
    // The reason and the subject are free text.
    'hold.set': ['hold', 'scope', 'zone', 'basis'],
    'hold.release': ['hold', 'scope', 'zone', 'basis'],
    // The reason is a person's sentence.
    'gap.accept': ['gap', 'outbox', 'epoch', 'from', 'to'],
    'policy.change': ['policy', 'zone', 'before', 'after'],
    'model.stage': ['model', 'revision', 'from', 'to', 'gate', 'verdict', 'alias', 'evidence', 'reason'],
    'model.tier': ['model', 'revision', 'file', 'from', 'to', 'rule', 'priority'],
    'content.erased': ['what', 'why'],
    'operator.act': ['action', 'zone', 'pool', 'count', 'outcome'],
  }).map(([type, names]) => [type, new Set([...names, 'oversize'])]),
);

/** Reports a member in the clear. An unknown type shows the members that every version shows. */
export const isPlain = (type: string, member: string): boolean => (byType.get(type) ?? inference).has(member);

/** Types with a list of their own, for the test that the lists are complete. */
export const listedTypes: readonly string[] = [...byType.keys()];
