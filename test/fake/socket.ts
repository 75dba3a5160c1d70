import type { SocketListener, StreamSocket } from '../../infra/pool/agent/stream/web-socket.ts';

/** A socket whose other side is the test. */
export class FakeSocket implements StreamSocket {
  readyState = 1;
  paused = false;
  pings = 0;
  closedWith: number | undefined;
  readonly sent: Uint8Array[] = [];
  /** While set, what is sent stays in the buffer. */
  clogged = false;
  #listener: SocketListener | undefined;
  #waiting = 0;
  #unsent: (() => void)[] = [];

  listen(listener: SocketListener) {
    this.#listener = listener;
  }
  /** The other side sends this. */
  hear(data: Buffer, isBinary = true) {
    this.#listener?.message(data, isBinary);
  }
  pong() {
    this.#listener?.pong();
  }
  isOpen() {
    return this.readyState === 1;
  }
  unsent() {
    return this.#waiting;
  }
  send(data: Uint8Array, done: () => void) {
    // A copy, because the sender may reuse the buffer.
    this.sent.push(new Uint8Array(data));
    if (!this.clogged) return done();
    this.#waiting += data.length;
    this.#unsent.push(done);
  }
  /** The other side reads everything. */
  flow() {
    this.clogged = false;
    this.#waiting = 0;
    for (const done of this.#unsent.splice(0)) done();
  }
  pause() {
    this.paused = true;
  }
  resume() {
    this.paused = false;
  }
  ping() {
    this.pings++;
  }
  close(code: number) {
    this.closedWith = code;
    this.gone();
  }
  terminate() {
    this.gone();
  }
  gone() {
    if (this.readyState !== 1) return;
    this.readyState = 3;
    this.#listener?.closed();
  }
}
