// Derived files by format.
import { canonicalJson } from '../canonical-json.ts';
import { deriveCsv } from './csv.ts';
import { auditEventOf } from './fhir.ts';
import { ocsfOf } from './ocsf.ts';
import { deriveParquet } from './parquet.ts';
import { cellOf, columns, type DerivedContext, type DerivedEntry, isoTime } from './row.ts';

type Derive = (entries: readonly DerivedEntry[], context: DerivedContext) => Uint8Array<ArrayBuffer>;

const encode = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);

/** A line of JSON for each entry. */
const lines =
  (of: (entry: DerivedEntry, context: DerivedContext) => unknown): Derive =>
  (entries, context) =>
    encode(entries.map((entry) => `${canonicalJson(of(entry, context))}\n`).join(''));

function plainRow(entry: DerivedEntry, context: DerivedContext): Record<string, unknown> {
  const cells = columns.map((column) => {
    const cell = cellOf(column, entry, context);
    return [column.name, column.type === 'time' && typeof cell === 'number' ? isoTime(cell) : cell];
  });
  return Object.fromEntries(cells);
}

export const derivedFormats = {
  ndjson: { file: 'derived/events.ndjson', derive: lines(plainRow) },
  csv: { file: 'derived/events.csv', derive: (entries, context) => encode(deriveCsv(entries, context)) },
  parquet: { file: 'derived/events.parquet', derive: deriveParquet },
  ocsf: { file: 'derived/ocsf.ndjson', derive: lines(ocsfOf) },
  fhir: { file: 'derived/fhir.ndjson', derive: lines(auditEventOf) },
} as const satisfies Record<string, { readonly file: string; readonly derive: Derive }>;

export type DerivedFormat = keyof typeof derivedFormats;
export const formatNames = Object.keys(derivedFormats) as DerivedFormat[];
export const isFormat = (name: string): name is DerivedFormat => Object.hasOwn(derivedFormats, name);
