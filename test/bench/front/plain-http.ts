// An HTTP/1.1 server that knows no more than a benchmark needs. Node's own costs so much that the upstream, and not
// the gateway in front of it, would be measured.
import net from 'node:net';

export interface Exchange {
  /** Request line and headers. */
  readonly head: string;
  readonly send: (bytes: Buffer) => void;
}

/** Called when the headers are there; what it returns gets the body's bytes (framing taken off) and then its end. */
export type Serve = (exchange: Exchange) => { bytes?: (chunk: Buffer) => void; end: () => void };

const NOTHING = Buffer.alloc(0);
const BLANK_LINE = Buffer.from('\r\n\r\n');

export function createPlainServer(serve: Serve): net.Server {
  return net.createServer({ noDelay: true }, (socket) => {
    const send = (bytes: Buffer) => void socket.write(bytes);
    let rest: Buffer = NOTHING;
    let current: ReturnType<Serve> | undefined;
    /** Bytes of the body, or of the chunk, that are still to come. */
    let left = 0;
    let chunked = false;

    /** Returns the number of processed bytes; -1 when more are needed. */
    function step(data: Buffer): number {
      if (!current) return readHead(data);
      if (left > 0) {
        const part = data.length > left ? data.subarray(0, left) : data;
        left -= part.length;
        current.bytes?.(part);
        if (left === 0 && !chunked) end();
        return part.length;
      }
      return readChunkSize(data, current);
    }

    function readHead(data: Buffer): number {
      const at = data.indexOf(BLANK_LINE);
      if (at < 0) return -1;
      const head = data.toString('latin1', 0, at);
      chunked = /\r\ntransfer-encoding: *chunked/i.test(head);
      left = chunked ? 0 : Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      current = serve({ head, send });
      if (left === 0 && !chunked) end();
      return at + BLANK_LINE.length;
    }

    function readChunkSize(data: Buffer, { end: _ }: ReturnType<Serve>): number {
      // The line end after a chunk comes together with the size of the next one.
      const from = data[0] === 0x0d ? 2 : 0;
      const at = data.indexOf('\r\n', from);
      if (at < 0) return -1;
      const size = Number.parseInt(data.toString('latin1', from, at), 16);
      if (size > 0) {
        left = size;
        return at + 2;
      }
      if (data.length < at + 4) return -1;
      end();
      return at + 4;
    }

    function end() {
      const done = current;
      current = undefined;
      done?.end();
    }

    socket.on('data', (chunk) => {
      let data = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
      while (data.length > 0) {
        const used = step(data);
        if (used < 0) break;
        data = data.subarray(used);
      }
      rest = data;
    });
    socket.on('error', () => socket.destroy());
  });
}
