// Cursor of a stream: a position in the log of a year. `2026-500000`, which continues in the next log.

export interface Cursor {
  /** Absent: the newest log. */
  readonly year: number | undefined;
  readonly index: number;
}

export const formatCursor = (year: number, index: number): string => `${year}-${index}`;

/** A position in the log of a year, or in the newest log. */
export const cursor = /^(?:([0-9]{4})-)?([0-9]{1,15})$/;

/** Parses a cursor; `undefined` when malformed. A bare number is a position in the newest log. */
export function readCursor(text: string): Cursor | undefined {
  const [, year, index] = cursor.exec(text) ?? [];
  if (index === undefined) return undefined;
  return { year: year === undefined ? undefined : Number(year), index: Number(index) };
}
