// Derived files by format: newline-delimited JSON, and CSV as RFC 4180 defines it.
import { canonicalJson } from '../canonical-json.ts';
import { type Cell, columns, isoTime } from './row.ts';

interface Format {
  readonly file: string;
  /** First line of the file. */
  readonly head: string;
  /** Formats the cells of one entry, in the order of `columns`. */
  readonly line: (cells: readonly Cell[]) => string;
}

/** Columns by name, the order that canonical JSON requires. */
const sorted = columns
  .map(({ name, type }, at) => ({ name, at, isTime: type === 'time' }))
  .sort((a, b) => (a.name < b.name ? -1 : 1));

function jsonLine(cells: readonly Cell[]): string {
  let members = '';
  for (const { name, at, isTime } of sorted) {
    const cell = cells[at];
    const value = isTime && typeof cell === 'number' ? isoTime(cell) : cell;
    if (value !== undefined) members += `${members === '' ? '' : ','}"${name}":${canonicalJson(value)}`;
  }
  return `{${members}}\n`;
}

/** First characters that make spreadsheets evaluate a cell. */
const FORMULA = /^[=+\-@\t\r]/;

function csvField(cell: Cell, isTime: boolean): string {
  if (cell === undefined) return '';
  if (typeof cell === 'number') return isTime ? (isoTime(cell) ?? '') : String(cell);
  const safe = FORMULA.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export const derivedFormats = {
  ndjson: { file: 'derived/events.ndjson', head: '', line: jsonLine },
  csv: {
    file: 'derived/events.csv',
    head: `${columns.map(({ name }) => name).join(',')}\r\n`,
    line: (cells) => `${columns.map(({ type }, at) => csvField(cells[at], type === 'time')).join(',')}\r\n`,
  },
} as const satisfies Record<string, Format>;

export type DerivedFormat = keyof typeof derivedFormats;
export const formatNames = Object.keys(derivedFormats) as DerivedFormat[];
export const isFormat = (name: string): name is DerivedFormat => Object.hasOwn(derivedFormats, name);
