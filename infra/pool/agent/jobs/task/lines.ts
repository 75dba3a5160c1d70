import type { z } from 'zod';
import { KiB } from '../../../../../shared/bytes.ts';

/** One segment of a result, which fits into an event of an answer. */
export const RESULT_LINE_BYTES = 64 * KiB;

const encoder = new TextEncoder();

export const encodeLine = (line: object): Uint8Array => encoder.encode(`${JSON.stringify(line)}\n`);

/** A file of this agent's own that is not understood: a bug, or written by another version. */
export class LineError extends Error {
  constructor(detail: string) {
    super(detail);
    this.name = 'LineError';
  }
}

/** Lines of JSON in bytes that are cut anywhere. @throws SheetError for what is none. */
export async function* readLines<T extends z.ZodType>(
  bytes: AsyncIterable<Uint8Array>,
  schema: T,
): AsyncGenerator<z.infer<T>> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of bytes) {
    rest += decoder.decode(chunk, { stream: true });
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield readLine(line, schema);
    if (rest.length > RESULT_LINE_BYTES) throw new LineError('line too long');
  }
  if (rest !== '') throw new LineError('ends within a line');
}

function readLine<T extends z.ZodType>(line: string, schema: T): z.infer<T> {
  try {
    return schema.parse(JSON.parse(line));
  } catch {
    // Messages of the parser may quote speech.
    throw new LineError('line is not understood');
  }
}
