import { limits } from '../../../shared/limits.ts';

/** An answer of an engine, whole. Names of headers are in small letters. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** What came is no answer, or too long. */
const answerFault = (detail: string) => Object.assign(new Error(detail), { code: 'ANSWER_WRONG' });

const END_OF_HEAD = '\r\n\r\n';
const WITHOUT_BODY = new Set([204, 304]);
const nothing = Buffer.alloc(0);

interface Head {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** The head that came last. Those of an engine are mostly alike, and a stream gets three a second. */
let known: { readonly text: string; readonly head: Head } | undefined;

function readHead(text: string): Head {
  if (known?.text !== text) known = { text, head: parseHead(text) };
  return known.head;
}

function parseHead(text: string): Head {
  const [first = '', ...lines] = text.split('\r\n');
  const status = /^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(first)?.[1];
  if (status === undefined) throw answerFault('not HTTP');
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon <= 0) throw answerFault('not a header');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  // Over HTTP/1.0 a connection ends with its answer unless it says otherwise.
  if (first.startsWith('HTTP/1.0')) headers.connection ??= 'close';
  return { status: Number(status), headers };
}

/** How long a body is, if that is said; `chunks`: it is told piece by piece; `end`: it lasts until the connection ends. */
function lengthOf({ status, headers }: Head): number | 'chunks' | 'end' {
  if (WITHOUT_BODY.has(status)) return 0;
  const coding = headers['transfer-encoding'];
  if (coding !== undefined) {
    if (coding.toLowerCase() !== 'chunked') throw answerFault('unknown coding');
    return 'chunks';
  }
  const length = headers['content-length'];
  if (length === undefined) return 'end';
  if (!/^\d{1,15}$/.test(length)) throw answerFault('length is no number');
  return Number(length);
}

/**
 * Reads the answer to one call (RFC 9112) from pieces that may be cut anywhere. Pieces are copied, so whoever reads a
 * socket can use the same memory again. Throws when what comes is no answer.
 */
export function createAnswerReader() {
  let waiting = nothing;
  let head: Head | undefined;
  let length: ReturnType<typeof lengthOf> = 0;
  const parts: Buffer[] = [];
  let received = 0;
  /** Bytes that are left of a chunk; `undefined` between two of them. */
  let chunk: number | undefined;

  function keep(bytes: Buffer) {
    received += bytes.length;
    if (received > limits.engineAnswerBytes.value) throw answerFault('answer too long');
    if (bytes.length > 0) parts.push(Buffer.from(bytes));
  }

  function finish({ status, headers }: Head): Answer {
    const [only] = parts;
    return { status, headers, body: only && parts.length === 1 ? only : Buffer.concat(parts) };
  }

  /** What is left behind the head, once that has come; the ones that only announce another are skipped. */
  function takeHead(bytes: Buffer): Buffer | undefined {
    const all = waiting.length > 0 ? Buffer.concat([waiting, bytes]) : bytes;
    const end = all.indexOf(END_OF_HEAD);
    if (end < 0) {
      if (all.length > limits.engineHeadBytes.value) throw answerFault('head too long');
      waiting = Buffer.from(all);
      return undefined;
    }
    const rest = all.subarray(end + END_OF_HEAD.length);
    waiting = nothing;
    const found = readHead(all.toString('latin1', 0, end));
    if (found.status < 200) return takeHead(rest);
    head = found;
    length = lengthOf(found);
    if (typeof length === 'number' && length > limits.engineAnswerBytes.value) throw answerFault('answer too long');
    return rest;
  }

  /** Whether the last chunk has come. */
  function takeChunks(bytes: Buffer): boolean {
    let rest = waiting.length > 0 ? Buffer.concat([waiting, bytes]) : bytes;
    waiting = nothing;
    for (;;) {
      if (chunk !== undefined && chunk > 0) {
        const piece = rest.subarray(0, chunk);
        keep(piece);
        chunk -= piece.length;
        rest = rest.subarray(piece.length);
        if (chunk > 0) return false;
      }
      // A line ends each chunk and another one begins the next; empty lines end the last one, behind its trailers.
      const line = rest.indexOf('\r\n');
      const last = chunk === undefined && /^0+(?:;|$)/.test(rest.toString('latin1', 0, Math.max(0, line)));
      const end = last ? rest.indexOf(END_OF_HEAD, line) : line;
      if (line < 0 || end < 0) {
        if (rest.length > (last ? limits.engineHeadBytes : limits.engineLineBytes).value)
          throw answerFault('line too long');
        waiting = Buffer.from(rest);
        return false;
      }
      if (last) return end + END_OF_HEAD.length === rest.length || fail('more than was asked for');
      chunk =
        chunk === 0 ? (line === 0 ? undefined : fail('chunk too long')) : sizeOf(rest.toString('latin1', 0, line));
      rest = rest.subarray(line + 2);
    }
  }

  return {
    /** The answer, once it is there whole. */
    push(bytes: Buffer): Answer | undefined {
      const rest = head ? bytes : takeHead(bytes);
      if (!rest || !head) return undefined;
      if (length === 'chunks') return takeChunks(rest) ? finish(head) : undefined;
      keep(rest);
      if (length === 'end' || received < length) return undefined;
      return received === length ? finish(head) : fail('more than was asked for');
    },
    /** The connection has ended: whole only when nothing said how long the answer is. */
    end: (): Answer | undefined => (head && length === 'end' ? finish(head) : undefined),
  };
}

function fail(detail: string): never {
  throw answerFault(detail);
}

function sizeOf(line: string): number {
  const digits = /^([0-9a-f]{1,8})\s*(?:;|$)/i.exec(line)?.[1];
  return digits === undefined ? fail('chunk without a length') : Number.parseInt(digits, 16);
}

export type AnswerReader = ReturnType<typeof createAnswerReader>;
