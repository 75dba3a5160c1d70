import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Answer, createAnswerReader } from '../../../infra/pool/agent/engine-answer.ts';
import { limits } from '../../../shared/limits.ts';
import { runs } from '../../seeds.ts';

const head = (...lines: string[]) => `HTTP/1.1 200 OK\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`;

/** What a reader makes of bytes that come in pieces, all of them in the same memory, as from a socket. */
function read(bytes: Buffer, cuts: readonly number[] = []): Answer | undefined {
  const reader = createAnswerReader();
  const room = Buffer.alloc(bytes.length);
  const ends = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  let answer: Answer | undefined;
  let from = 0;
  for (const end of [...ends, bytes.length]) {
    room.set(bytes.subarray(from, end));
    answer = reader.push(room.subarray(0, end - from)) ?? answer;
    room.fill(0xee);
    from = end;
  }
  return answer ?? reader.end();
}

const text = (answer: Answer | undefined) => answer && Buffer.from(answer.body).toString('latin1');
const cuts = fc.array(fc.nat({ max: 5_000 }), { maxLength: 12 });
const body = fc.uint8Array({ maxLength: 600 }).map((bytes) => Buffer.from(bytes));

/** The body in chunks, the way RFC 9112 §7.1 writes them. */
function chunked(pieces: readonly Buffer[], extension: string, trailer: string): Buffer {
  const parts = pieces.flatMap((piece) => [
    Buffer.from(`${piece.length.toString(16)}${extension}\r\n`),
    piece,
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...parts, Buffer.from(`0\r\n${trailer}\r\n`)]);
}

describe('the answer of an engine (RFC 9112)', () => {
  it('cut anywhere is the same: with a length, in chunks, or until the connection ends', () => {
    const how = fc.constantFrom('length', 'chunks', 'end');
    const extra = fc.constantFrom('', ';name=value');
    const trailer = fc.constantFrom('', 'seen: 1\r\n');
    const before = fc.constantFrom('', 'HTTP/1.1 100 Continue\r\n\r\n');
    fc.assert(
      fc.property(
        how,
        fc.array(body, { maxLength: 4 }),
        cuts,
        extra,
        trailer,
        before,
        (way, given, at, ext, end, first) => {
          const pieces = given.filter((piece) => piece.length > 0);
          const whole = Buffer.concat(pieces);
          const told = {
            length: [head('X-Seen: yes', `Content-Length: ${whole.length}`), whole],
            chunks: [head('X-Seen: yes', 'Transfer-Encoding: chunked'), chunked(pieces, ext, end)],
            end: [head('X-Seen: yes', 'Connection: close'), whole],
          } as const;
          const [start, rest] = told[way];
          const answer = read(Buffer.concat([Buffer.from(first + start), rest]), at);
          expect(answer?.status).toBe(200);
          expect(answer?.headers['x-seen']).toBe('yes');
          expect(Buffer.compare(answer?.body ?? Buffer.alloc(0), whole)).toBe(0);
        },
      ),
      { numRuns: runs(400, 10_000) },
    );
  });

  it('has no body where HTTP has none', () => {
    expect(text(read(Buffer.from('HTTP/1.1 204 No Content\r\n\r\n')))).toBe('');
  });

  it('is none when it is cut off', () => {
    expect(read(Buffer.from(`${head('content-length: 10')}half`))).toBeUndefined();
    expect(read(Buffer.from(`${head('transfer-encoding: chunked')}5\r\nhalf`))).toBeUndefined();
    expect(read(Buffer.from('HTTP/1.1 200 OK\r\ncontent-le'))).toBeUndefined();
  });

  it.each([
    ['what is not HTTP', 'SSH-2.0-OpenSSH\r\n\r\n'],
    ['a header without a name', head(': nothing')],
    ['a length that is no number', head('content-length: 0x10')],
    ['a coding nobody asked for', head('transfer-encoding: gzip')],
    ['more than it said', `${head('content-length: 2')}three`],
    ['a chunk without a length', `${head('transfer-encoding: chunked')}zz\r\n`],
    ['a chunk longer than it said', `${head('transfer-encoding: chunked')}2\r\nthree\r\n0\r\n\r\n`],
    ['bytes behind the last chunk', `${head('transfer-encoding: chunked')}0\r\n\r\nmore`],
    ['an endless head', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}`],
    ['an endless line before a chunk', `${head('transfer-encoding: chunked')}1;${'y'.repeat(300)}`],
    ['a body too long', head(`content-length: ${limits.engineAnswerBytes.value + 1}`)],
  ])('is refused: %s', (_, bytes) => {
    expect(() => read(Buffer.from(bytes))).toThrow();
  });

  it('any bytes are an answer, none yet, or refused', () => {
    const start = fc.constantFrom('', head('content-length: 5'), head('transfer-encoding: chunked'));
    fc.assert(
      fc.property(start, fc.uint8Array({ maxLength: 200 }), cuts, (first, bytes, at) => {
        try {
          read(Buffer.concat([Buffer.from(first), bytes]), at);
        } catch (error) {
          expect(error).toMatchObject({ code: 'ANSWER_WRONG' });
        }
      }),
      { numRuns: runs(400, 10_000) },
    );
  });
});
