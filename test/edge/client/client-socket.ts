// A WebSocket class for edge/client that leads to the Worker under test, and whose network a test can break.
import type { ClientSocket, SocketClass } from '../../../edge/client/stream.ts';
import { ask } from '../../fake/network.ts';

export interface Network {
  readonly sockets: EdgeSocket[];
  /** While it is down no connection comes about. */
  down: boolean;
  readonly Socket: SocketClass;
}

export class EdgeSocket implements ClientSocket {
  binaryType = 'blob';
  readyState = 0;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  onerror: ((event: unknown) => void) | null = null;
  readonly url: string;
  #socket: RuntimeSocket | undefined;
  /** The network drops all further messages of both sides, without a close. */
  #cut = false;
  #deaf = false;
  readonly received: Record<string, unknown>[] = [];

  constructor(url: string, protocols: string[], network: Network) {
    this.url = url;
    network.sockets.push(this);
    void this.#connect(new URL(url), protocols, network);
  }

  async #connect({ pathname, search }: URL, protocols: string[], network: Network): Promise<void> {
    // Nothing happens before the caller has set its listeners.
    await Promise.resolve();
    if (network.down) return this.#over(1006, '');
    const headers = { upgrade: 'websocket', 'sec-websocket-protocol': protocols.join(', ') };
    const answer = await ask(`${pathname}${search}`, { headers });
    const socket = answer.webSocket;
    if (!socket) return this.#over(1006, '');
    this.#socket = socket;
    socket.binaryType = 'arraybuffer';
    socket.addEventListener('message', ({ data }) => {
      if (this.#cut || this.#deaf) return;
      this.received.push(JSON.parse(String(data)) as Record<string, unknown>);
      this.onmessage?.({ data });
    });
    socket.addEventListener('close', ({ code, reason }) => {
      if (this.#cut) return;
      // Browsers answer a close by themselves.
      if (!this.#deaf) socket.close(1000, '');
      this.#over(code, reason);
    });
    socket.accept();
    this.readyState = 1;
    this.onopen?.();
  }

  #over(code: number, reason: string): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.onclose?.({ code, reason });
  }

  send(message: string | Uint8Array<ArrayBuffer>): void {
    if (!this.#cut) this.#socket?.send(message);
  }

  close(code = 1000, reason = ''): void {
    if (!this.#cut) this.#socket?.close(code, reason);
    this.readyState = 3;
  }

  /** Drops incoming messages from now on; outgoing ones arrive. */
  deafen(): void {
    this.#deaf = true;
  }

  /** The connection breaks: both sides see it go. */
  break(): void {
    this.#cut = true;
    this.#socket?.close(4000, 'broken');
    this.#over(1006, '');
  }

  /** Drops the network: this side closes, and the edge still considers the client connected. */
  vanish(): void {
    this.#cut = true;
    this.#over(1006, '');
  }
}

export function makeNetwork(): Network {
  const network: Network = {
    sockets: [],
    down: false,
    Socket: class extends EdgeSocket {
      constructor(url: string, protocols: string[]) {
        super(url, protocols, network);
      }
    },
  };
  return network;
}
