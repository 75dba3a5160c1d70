import net from 'node:net';

const READ_BYTES = 65_536;

/** One for all connections: what is read lies there until the next one is read. */
const readRoom = Buffer.allocUnsafeSlow(READ_BYTES);

/** What a socket of Node reads from and writes to. It has always been there, and no type tells of it. */
interface Handle {
  reading: boolean;
  readStop(): void;
}

/**
 * A connection that came through an HTTP server, now read into one piece of memory for all of them. A server's own
 * sockets get 64 KiB from the system for each read and give most of it back afterwards, which takes as long as all that
 * becomes of a frame in JavaScript. Whatever ends one of the two sockets ends both. Without that handle it stays as it
 * is. `hear` may keep nothing of what it gets.
 */
export function takeOver(connection: net.Socket, hear: (bytes: Buffer) => void): net.Socket {
  const owner = connection as unknown as { _handle: Handle | null };
  const handle = owner._handle;
  if (!handle || connection.constructor !== net.Socket) return connection.on('data', hear);
  handle.readStop();
  handle.reading = false;
  owner._handle = null;
  const callback = (length: number) => {
    hear(readRoom.subarray(0, length));
    return true;
  };
  const options = { handle, allowHalfOpen: true, onread: { buffer: readRoom, callback } };
  const own = new net.Socket(options as net.SocketConstructorOpts);
  own.once('close', () => connection.destroy());
  connection.once('close', () => own.destroy());
  // Nothing is read from it as a stream, but its end is.
  return own.resume();
}
