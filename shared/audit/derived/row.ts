// An entry as a row of a table, the source of every derived file. Derived files are views for other programs.
// Each row names its log, entry and hash, and a verifier of a bundle regenerates all of them.
import { canonicalJson } from '../canonical-json.ts';

export interface DerivedEntry {
  readonly index: number;
  /** Leaf hash of the entry, in hex. */
  readonly leafHash: string;
  readonly leaf: Readonly<Record<string, unknown>>;
  /** Disclosed values by name. */
  readonly shown: Readonly<Record<string, unknown>>;
}

export interface DerivedContext {
  readonly origin: string;
  /** The signed checkpoint that covers the entries. */
  readonly note: string;
}

export type Cell = string | number | undefined;

export interface Column {
  readonly name: string;
  /** `time` is in ms since 1970. */
  readonly type: 'text' | 'integer' | 'number' | 'time';
  readonly of: (entry: DerivedEntry, context: DerivedContext) => unknown;
}

/** Returns a member of an event, in the clear or disclosed. */
export const memberOf = ({ leaf, shown }: DerivedEntry, name: string): unknown => leaf[name] ?? shown[name];

const member = (type: Column['type'], name: string, source = name): Column => ({
  ...{ name, type },
  of: (entry) => memberOf(entry, source),
});

export const timeOf = ({ leaf }: DerivedEntry, which: 'origin' | 'seq'): number | undefined => {
  const { t } = leaf;
  const value = typeof t === 'object' && t !== null ? (t as Record<string, unknown>)[which] : undefined;
  return typeof value === 'number' ? value : undefined;
};

/** Permanent order: new columns are appended. */
export const columns: readonly Column[] = [
  { name: 'log', type: 'text', of: (_, { origin }) => origin },
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
  const rest: [string, unknown][] = [];
  for (const name of Object.keys(shown)) {
    if (!TAKEN.has(name) && !Object.hasOwn(leaf, name)) rest.push([name, shown[name]]);
  }
  for (const name of Object.keys(leaf)) if (!TAKEN.has(name)) rest.push([name, leaf[name]]);
  return rest.length > 0 ? canonicalJson(Object.fromEntries(rest)) : undefined;
}

/**
 * Converts a cell to its column's type; `undefined` for a value of another type, which the entry may still
 * have.
 */
function cellOf({ type, of }: Column, entry: DerivedEntry, context: DerivedContext): Cell {
  const value = of(entry, context);
  if (type === 'text') return typeof value === 'string' ? value : undefined;
  if (typeof value !== 'number' || !Number.isFinite(value)) return undefined;
  return type === 'number' || Number.isSafeInteger(value) ? value : undefined;
}

/** An entry with its cells, computed once for all formats. */
export class DerivedRow {
  readonly entry: DerivedEntry;
  readonly #context: DerivedContext;
  #cells: readonly Cell[] | undefined;

  constructor(entry: DerivedEntry, context: DerivedContext) {
    this.entry = entry;
    this.#context = context;
  }

  /** Cells in the order of `columns`. */
  get cells(): readonly Cell[] {
    this.#cells ??= columns.map((column) => cellOf(column, this.entry, this.#context));
    return this.#cells;
  }
}

/** A derived file under construction. It buffers no more than its format needs. */
export interface Deriving {
  /** Beginning of the file. */
  readonly head: string;
  /** Adds a row; returns the text that a line-based format appends. */
  add(row: DerivedRow): string;
  /** Returns the end of the file. */
  end(): readonly Uint8Array[];
}

/** Formats a time as ISO 8601; `undefined` beyond the range of `Date`. */
export const isoTime = (ms: number): string | undefined =>
  Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : undefined;
