// Comma-separated values (RFC 4180), escaped so that no spreadsheet takes a value for a formula.
import { type Cell, type Column, columns, type Deriving, isoTime } from './row.ts';

/** Prefixes that spreadsheets evaluate as formulas. */
const FORMULA = /^[=+\-@\t\r]/;

function csvText(value: string): string {
  const safe = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function fieldOf({ type }: Column, cell: Cell): string {
  if (cell === undefined) return '';
  if (typeof cell === 'string') return csvText(cell);
  return type === 'time' ? (isoTime(cell) ?? '') : String(cell);
}

export const openCsv = (): Deriving => ({
  head: `${columns.map(({ name }) => name).join(',')}\r\n`,
  add: ({ cells }) => `${columns.map((column, at) => fieldOf(column, cells[at])).join(',')}\r\n`,
  end: () => [],
});
