// Comma-separated values as RFC 4180 says, and so that no spreadsheet takes a value for a formula.
import { type Column, cellOf, columns, type DerivedContext, type DerivedEntry, isoTime } from './row.ts';

/** What spreadsheets calculate instead of showing it. */
const FORMULA = /^[=+\-@\t\r]/;

function csvText(value: string): string {
  const safe = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function fieldOf(column: Column, entry: DerivedEntry, context: DerivedContext): string {
  const cell = cellOf(column, entry, context);
  if (cell === undefined) return '';
  if (typeof cell === 'string') return csvText(cell);
  return column.type === 'time' ? (isoTime(cell) ?? '') : String(cell);
}

export function deriveCsv(entries: readonly DerivedEntry[], context: DerivedContext): string {
  const head = columns.map(({ name }) => name).join(',');
  const rows = entries.map((entry) => columns.map((column) => fieldOf(column, entry, context)).join(','));
  return [head, ...rows].map((line) => `${line}\r\n`).join('');
}
