import { EventEmitter } from 'node:events';
import type WebSocket from 'ws';

/** A socket whose other side is the test. */
export class SocketDouble extends EventEmitter {
  readonly OPEN = 1;
  readyState = 1;
  bufferedAmount = 0;
  paused = false;
  pings = 0;
  closedWith: number | undefined;
  readonly sent: Uint8Array[] = [];
  /** While set, what is sent stays in the buffer. */
  clogged = false;
  private unsent: (() => void)[] = [];

  send(data: Uint8Array, _options: object, done: () => void) {
    this.sent.push(data);
    if (!this.clogged) return done();
    this.bufferedAmount += data.length;
    this.unsent.push(done);
  }
  /** The other side reads everything. */
  flow() {
    this.clogged = false;
    this.bufferedAmount = 0;
    for (const done of this.unsent.splice(0)) done();
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
    this.emit('close');
  }
  asWebSocket(): WebSocket {
    return this as unknown as WebSocket;
  }
}
