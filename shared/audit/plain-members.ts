// Which members of an event stand in its leaf in the clear. Everything else is a commitment: who somebody is, what somebody
// wrote, and whatever is so rare or so easily guessed that it tells one request from another.

/** Of events that inference leaves, of all versions: the names of these members are taken for good. */
const inference = new Set([
  ...['action', 'class', 'model', 'language', 'status', 'reason', 'revision', 'agent', 'suppressed', 'scope'],
  ...['expires', 'attempt', 'pool', 'zone', 'why', 'outcome', 'from', 'to', 'time', 'suite', 'lost', 'oversize'],
]);

/** Of the others by type, `oversize` besides. */
const byType: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    'producer.open': ['previous', 'previousLast'],
    'producer.close': ['last'],
    'inference.unknown': ['action', 'class', 'heard'],
    breakglass: ['action', 'class', 'stage', 'reason', 'since'],
    'export.create': ['export', 'format', 'redaction', 'from', 'range'],
    'export.read': ['export', 'action', 'count'],
    'access.audit': ['action', 'zone', 'count', 'since'],
    'erasure.exec': ['outcome', 'erased', 'count', 'basis', 'waits', 'until'],
    // Why, and about whom, is somebody's sentence.
    'hold.set': ['hold', 'scope', 'zone', 'basis'],
    'hold.release': ['hold', 'scope', 'zone', 'basis'],
    // The reason is a person's sentence.
    'gap.accept': ['gap', 'outbox', 'epoch', 'from', 'to'],
    'policy.change': ['policy', 'zone', 'before', 'after'],
    'model.stage': ['model', 'revision', 'from', 'to', 'gate', 'verdict', 'alias', 'evidence', 'reason'],
    'content.erased': ['what', 'why'],
    'operator.act': ['action', 'zone', 'count', 'outcome'],
  }).map(([type, names]) => [type, new Set([...names, 'oversize'])]),
);

/** A type that this version does not know shows what all versions show. */
export const isPlain = (type: string, member: string): boolean => (byType.get(type) ?? inference).has(member);

/** Types with a list of their own, for whoever checks that the lists are whole. */
export const listedTypes: readonly string[] = [...byType.keys()];
