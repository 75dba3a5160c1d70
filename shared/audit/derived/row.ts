// An audit entry as a row of a table. Derived files (NDJSON, CSV) are views: each row names the log, the entry and its hash,
// and the verifier of a bundle derives every row again.
import { canonicalJson } from '../canonical-json.ts';

export interface DerivedEntry {
  readonly index: number;
  /** Leaf hash of the entry, in hex. */
  readonly leafHash: string;
  readonly leaf: Readonly<Record<string, unknown>>;
  /** Disclosed values by name. */
  readonly shown: Readonly<Record<string, unknown>>;
}

export type Cell = string | number | undefined;

export interface Column {
  readonly name: string;
  /** `time` is in ms since 1970. */
  readonly type: 'text' | 'integer' | 'number' | 'time';
  readonly of: (entry: DerivedEntry, origin: string) => unknown;
}

const member = (type: Column['type'], name: string, source = name): Column => ({
  ...{ name, type },
  of: ({ leaf, shown }) => leaf[source] ?? shown[source],
});

const timeOf = ({ leaf: { t } }: DerivedEntry, which: 'origin' | 'seq'): unknown =>
  typeof t === 'object' && t !== null ? (t as Record<string, unknown>)[which] : undefined;

/** The order is fixed; new columns go last. */
export const columns: readonly Column[] = [
  { name: 'log', type: 'text', of: (_, origin) => origin },
  { name: 'index', type: 'integer', of: ({ index }) => index },
  { name: 'leaf_hash', type: 'text', of: ({ leafHash }) => leafHash },
  member('text', 'id'),
  member('text', 'type'),
  { name: 'time', type: 'time', of: (entry) => timeOf(entry, 'origin') },
  { name: 'time_logged', type: 'time', of: (entry) => timeOf(entry, 'seq') },
  member('text', 'tenant', 'tn'),
  member('integer', 'tseq'),
  member('text', 'outbox', 'p'),
  member('text', 'epoch', 'ep'),
  member('integer', 'pseq'),
  member('text', 'reported_by', 'by'),
  member('text', 'request', 'req'),
  member('text', 'subject'),
  member('text', 'action'),
  member('text', 'class'),
  member('text', 'model'),
  member('text', 'revision'),
  member('text', 'language'),
  member('text', 'pool'),
  member('text', 'agent'),
  member('text', 'zone'),
  member('integer', 'status'),
  member('text', 'reason'),
  member('text', 'outcome'),
  member('number', 'audio_seconds', 'audioSeconds'),
  member('integer', 'bytes'),
  member('number', 'milliseconds'),
  { name: 'more', type: 'text', of: moreOf },
];

/** Members that have a column. */
const TAKEN = new Set([
  ...[
    'v',
    'id',
    'type',
    'by',
    'p',
    'ep',
    'pseq',
    'tn',
    'tseq',
    'req',
    't',
    'sd',
    'subject',
    'action',
    'class',
    'model',
  ],
  ...['revision', 'language', 'pool', 'agent', 'zone', 'status', 'reason', 'outcome', 'audioSeconds', 'bytes'],
  'milliseconds',
]);

/** Returns all members without a column, as JSON. */
function moreOf({ leaf, shown }: DerivedEntry): string | undefined {
  const rest = Object.entries({ ...shown, ...leaf }).filter(([name]) => !TAKEN.has(name));
  return rest.length > 0 ? canonicalJson(Object.fromEntries(rest)) : undefined;
}

/** Returns the cells of an entry in the order of `columns`; a value of another type than its column is left out. */
export const cellsOf = (entry: DerivedEntry, origin: string): readonly Cell[] =>
  columns.map(({ type, of }) => {
    const value = of(entry, origin);
    if (type === 'text') return typeof value === 'string' ? value : undefined;
    if (typeof value !== 'number' || !Number.isFinite(value)) return undefined;
    return type === 'number' || Number.isSafeInteger(value) ? value : undefined;
  });

/** Returns a time as ISO 8601 text; `undefined` beyond the range of `Date`. */
export const isoTime = (ms: number): string | undefined =>
  Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : undefined;
