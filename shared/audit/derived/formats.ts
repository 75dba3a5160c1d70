// Derived files by format.
import { joined } from '../../bytes.ts';
import { canonicalJson } from '../canonical-json.ts';
import { openCsv } from './csv.ts';
import { auditEventOf } from './fhir.ts';
import { openOcsf } from './ocsf.ts';
import { openParquet } from './parquet.ts';
import { columns, type DerivedContext, type DerivedEntry, type DerivedRow, type Deriving, isoTime } from './row.ts';

type Open = (context: DerivedContext) => Deriving;

/** A line of JSON for each entry. */
const lines =
  (open: (context: DerivedContext) => (entry: DerivedEntry) => unknown): Open =>
  (context) => {
    const of = open(context);
    return { head: '', add: ({ entry }) => `${canonicalJson(of(entry))}\n`, end: () => [] };
  };

/** Columns as canonical JSON has them. */
const sorted = columns
  .map(({ name, type }, at) => ({ name, at, isTime: type === 'time' }))
  .sort((a, b) => (a.name < b.name ? -1 : 1));

function plainLine({ cells }: DerivedRow): string {
  let members = '';
  for (const { name, at, isTime } of sorted) {
    const cell = cells[at];
    const value = isTime && typeof cell === 'number' ? isoTime(cell) : cell;
    if (value !== undefined) members += `${members === '' ? '' : ','}"${name}":${canonicalJson(value)}`;
  }
  return `{${members}}\n`;
}

export const derivedFormats = {
  ndjson: { file: 'derived/events.ndjson', open: () => ({ head: '', add: plainLine, end: () => [] }) },
  csv: { file: 'derived/events.csv', open: openCsv },
  parquet: { file: 'derived/events.parquet', open: openParquet },
  ocsf: { file: 'derived/ocsf.ndjson', open: lines(openOcsf) },
  fhir: { file: 'derived/fhir.ndjson', open: lines((context) => (entry) => auditEventOf(entry, context)) },
} as const satisfies Record<string, { readonly file: string; readonly open: Open }>;

export type DerivedFormat = keyof typeof derivedFormats;
export const formatNames = Object.keys(derivedFormats) as DerivedFormat[];
export const isFormat = (name: string): name is DerivedFormat => Object.hasOwn(derivedFormats, name);

/** A derived file as a whole. */
export function deriveFile(
  format: DerivedFormat,
  rows: readonly DerivedRow[],
  context: DerivedContext,
): Uint8Array<ArrayBuffer> {
  const making: Deriving = derivedFormats[format].open(context);
  const text = [making.head, ...rows.map((row) => making.add(row))].join('');
  return joined([new TextEncoder().encode(text), ...making.end()]);
}
