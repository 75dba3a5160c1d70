// A line of `entries.ndjson`: the entry's bytes as they are in the log, and where. The bytes are JSON themselves, so the
// line is, too; whoever hashes the entry cuts it out as it stands.

const MIDDLE = ',"leaf":';
const START = /^\{"index":(0|[1-9]\d{0,15}),"leaf":/;

/** `text` is an entry that is JSON on one line. */
export const formatEntryLine = (index: number, text: string): string => `{"index":${index}${MIDDLE}${text}}\n`;

export interface EntryLine {
  readonly index: number;
  /** The entry, as it is in the log. */
  readonly text: string;
}

/** `undefined` when it is not a line as `formatEntryLine` writes it. */
export function readEntryLine(line: string): EntryLine | undefined {
  const start = START.exec(line);
  const index = Number(start?.[1]);
  if (!start || !Number.isSafeInteger(index) || !line.endsWith('}')) return undefined;
  return { index, text: line.slice(start[0].length, -1) };
}

/** Lines of a file that ends with a line break; `undefined` when the last one does not, or it is not UTF-8. */
export function linesOf(bytes: Uint8Array): string[] | undefined {
  if (bytes.length === 0) return [];
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.endsWith('\n') ? text.slice(0, -1).split('\n') : undefined;
  } catch {
    return undefined;
  }
}
