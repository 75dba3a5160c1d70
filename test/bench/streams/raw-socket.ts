// A WebSocket client for measuring: RFC 6455 with no more than a load client needs, since a library's share of a frame
// would be a third of the core that the load has. It masks as every client must.
import { randomBytes } from 'node:crypto';
import net from 'node:net';

export interface RawEars {
  open(): void;
  message(data: Buffer): void;
  /** The status of an answer that is no upgrade. */
  refused(status: number): void;
  /** Called once with the peer's close code; 1006 without one. */
  closed(code: number): void;
}

export interface RawSocket {
  send(payload: Buffer): void;
}

const BINARY = 0x82;
const CLOSE = 0x88;
const PONG = 0x8a;
const MASK = Buffer.of(0x37, 0xfa, 0x21, 0x3d);
const MASK_WORD = MASK.readInt32LE(0);
const ABNORMAL = 1006;
/** Everything that is read lies here for a moment, and everything that is written until the kernel has it. */
const readRoom = Buffer.allocUnsafeSlow(65_536);
const newRoom = () => {
  const bytes = Buffer.allocUnsafeSlow(66_000);
  return { bytes, words: new Int32Array(bytes.buffer, 0, bytes.length >> 2) };
};
let room = newRoom();

/** A masked frame in `room`; its payload begins at a whole word when it is long. */
function frame(first: number, payload: Buffer): Buffer {
  const long = payload.length > 125;
  const from = long ? 8 : 6;
  const { bytes, words } = room;
  bytes[0] = first;
  bytes[1] = 0x80 | (long ? 126 : payload.length);
  if (long) bytes.writeUInt16BE(payload.length, 2);
  MASK.copy(bytes, from - 4);
  bytes.set(payload, from);
  const end = from + payload.length;
  if (long) for (let at = 2; at < (end + 3) >> 2; at += 1) words[at] = (words[at] as number) ^ MASK_WORD;
  else for (let at = from; at < end; at += 1) bytes[at] = (bytes[at] as number) ^ (MASK[(at - from) & 3] as number);
  return bytes.subarray(0, end);
}

export function openRawSocket(url: string, headers: Readonly<Record<string, string>>, ears: RawEars): RawSocket {
  const { hostname, port, pathname, host } = new URL(url);
  let upgraded = false;
  let over = false;
  let code = ABNORMAL;
  let rest = Buffer.alloc(0);

  const socket = net.connect({
    host: hostname,
    port: Number(port),
    noDelay: true,
    onread: {
      buffer: readRoom,
      callback(length) {
        hear(readRoom.subarray(0, length));
        return true;
      },
    },
  });

  function write(bytes: Buffer) {
    socket.write(bytes);
    // The kernel has not taken all of it: the place must stay as it is.
    if (socket.writableLength > 0) room = newRoom();
  }

  function end() {
    if (over) return;
    over = true;
    socket.destroy();
    ears.closed(code);
  }

  function hear(bytes: Buffer) {
    const all = rest.length > 0 ? Buffer.concat([rest, bytes]) : bytes;
    let at = 0;
    while (!over) {
      const used = upgraded ? takeFrame(all, at) : takeHead(all);
      if (used === 0) break;
      at += used;
    }
    rest = at < all.length ? Buffer.from(all.subarray(at)) : Buffer.alloc(0);
  }

  function takeHead(all: Buffer): number {
    const length = all.indexOf('\r\n\r\n') + 4;
    if (length < 4) return 0;
    const status = Number(all.toString('latin1', 9, 12));
    if (status === 101) {
      upgraded = true;
      ears.open();
    } else {
      ears.refused(status);
      end();
    }
    return length;
  }

  /** Bytes of the frame at `at`; 0 when it is not there whole. */
  function takeFrame(all: Buffer, at: number): number {
    if (all.length < at + 2) return 0;
    const short = (all[at + 1] as number) & 0x7f;
    const head = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (all.length < at + head) return 0;
    const length = short < 126 ? short : short === 126 ? all.readUInt16BE(at + 2) : all.readUInt32BE(at + 6);
    if (all.length < at + head + length) return 0;
    const payload = all.subarray(at + head, at + head + length);
    const first = all[at] as number;
    if (first === BINARY) ears.message(payload);
    else if (first === 0x89) write(frame(PONG, payload));
    else if (first === CLOSE) {
      if (length >= 2) code = payload.readUInt16BE(0);
      write(frame(CLOSE, payload));
      end();
    } else if (first !== PONG) {
      // The agent sends whole binary messages only.
      end();
    }
    return head + length;
  }

  socket.on('error', () => {});
  socket.on('close', end);
  socket.resume();
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const key = randomBytes(16).toString('base64');
  socket.write(
    `GET ${pathname} HTTP/1.1\r\nhost: ${host}\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${key}\r\n${lines.join('')}\r\n`,
  );
  return { send: (payload) => void (over || write(frame(BINARY, payload))) };
}
