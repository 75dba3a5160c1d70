// One entry as a row of a table: what every derived file is made of. Derived files are views for other programs; each row
// says of which log, which entry, and which hash it is, and whoever verifies a bundle makes all of them again.
import { canonicalJson } from '../canonical-json.ts';

export interface DerivedEntry {
  readonly index: number;
  /** Leaf hash of the entry, in hex. */
  readonly leafHash: string;
  readonly leaf: Readonly<Record<string, unknown>>;
  /** Values that are disclosed, by name. */
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

/** A member of an event, in the clear or disclosed. */
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

/** In this order for good: new ones come last. */
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

/** All members that have no column, as JSON. */
function moreOf({ leaf, shown }: DerivedEntry): string | undefined {
  const rest: [string, unknown][] = [];
  for (const name of Object.keys(shown)) {
    if (!TAKEN.has(name) && !Object.hasOwn(leaf, name)) rest.push([name, shown[name]]);
  }
  for (const name of Object.keys(leaf)) if (!TAKEN.has(name)) rest.push([name, leaf[name]]);
  return rest.length > 0 ? canonicalJson(Object.fromEntries(rest)) : undefined;
}

/** A cell as its column has it; what is of another type is not there (it may be in the entry all the same). */
function cellOf({ type, of }: Column, entry: DerivedEntry, context: DerivedContext): Cell {
  const value = of(entry, context);
  if (type === 'text') return typeof value === 'string' ? value : undefined;
  if (typeof value !== 'number' || !Number.isFinite(value)) return undefined;
  return type === 'number' || Number.isSafeInteger(value) ? value : undefined;
}

/** An entry with its cells, which are made once for all formats that have them. */
export class DerivedRow {
  readonly entry: DerivedEntry;
  readonly #context: DerivedContext;
  #cells: readonly Cell[] | undefined;

  constructor(entry: DerivedEntry, context: DerivedContext) {
    this.entry = entry;
    this.#context = context;
  }

  /** In the order of `columns`. */
  get cells(): readonly Cell[] {
    this.#cells ??= columns.map((column) => cellOf(column, this.entry, this.#context));
    return this.#cells;
  }
}

/** A derived file in the making: held of it is no more than its format needs. */
export interface Deriving {
  /** What the file begins with. */
  readonly head: string;
  /** Takes the next row; returns what it adds to the file, where its format has lines. */
  add(row: DerivedRow): string;
  /** What the file ends with. */
  end(): readonly Uint8Array[];
}

/** A time as text; `undefined` where no calendar reaches. */
export const isoTime = (ms: number): string | undefined =>
  Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : undefined;
