// A line of `entries.ndjson`: the bytes of an entry as the log has them, and its index. Verifiers cut the
// entry out of the line and hash it.

const MIDDLE = ',"leaf":';
const START = /^\{"index":(0|[1-9]\d{0,15}),"leaf":/;

/** `text` is an entry that is JSON on one line. */
export const formatEntryLine = (index: number, text: string): string => `{"index":${index}${MIDDLE}${text}}\n`;

export interface EntryLine {
  readonly index: number;
  /** The entry, byte for byte as in the log. */
  readonly bytes: Uint8Array;
  readonly text: string;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Parses a line of `formatEntryLine`; `undefined` for other lines and invalid UTF-8. */
export function readEntryLine(line: Uint8Array): EntryLine | undefined {
  const whole = decodeText(line);
  const start = whole === undefined ? undefined : START.exec(whole);
  const index = Number(start?.[1]);
  if (whole === undefined || !start || !Number.isSafeInteger(index) || !whole.endsWith('}')) return undefined;
  // The prefix is ASCII, so characters are bytes.
  const from = start[0].length;
  return { index, bytes: line.subarray(from, -1), text: whole.slice(from, -1) };
}

export function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

const LINE_BREAK = 0x0a;

/** Yields the lines of a file one at a time. Bytes after the last line break are a line, too. */
export function* linesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let from = 0; from < bytes.length; ) {
    const found = bytes.indexOf(LINE_BREAK, from);
    const to = found < 0 ? bytes.length : found;
    yield bytes.subarray(from, to);
    from = to + 1;
  }
}
