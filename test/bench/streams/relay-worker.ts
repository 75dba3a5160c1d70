// Peer: the minimal work of a Durable Object between two sockets. One object for each stream; no token,
// allowance, record, encryption or buffer. Not part of the product.
import { DurableObject } from 'cloudflare:workers';

interface Env {
  readonly UPSTREAM: string;
  readonly RELAY: { getByName(name: string): { fetch(request: Request): Promise<Response> } };
}

/** A socket as this runtime has it. */
type Socket = WebSocket & { accept(): void };

export class Relay extends DurableObject<Env> {
  async fetch(): Promise<Response> {
    const answer = await fetch(this.env.UPSTREAM, {
      headers: { upgrade: 'websocket' },
    });
    const upstream = answer.webSocket as unknown as Socket | null;
    if (!upstream) return new Response('no upstream', { status: 502 });
    const [client, server] = Object.values(new WebSocketPair()) as unknown as [Socket, Socket];
    join(server, upstream);
    join(upstream, server);
    server.accept();
    upstream.accept();
    return new Response(null, { status: 101, webSocket: client } as ResponseInit);
  }
}

function join(from: WebSocket, to: WebSocket): void {
  from.binaryType = 'arraybuffer';
  from.addEventListener('message', ({ data }) => to.send(data));
  from.addEventListener('close', ({ code, reason }) => {
    // 1005 and 1006 mean that no close code was received; they cannot be sent on.
    if (code === 1005 || code === 1006) to.close();
    else to.close(code, reason);
  });
}

export const worker = {
  fetch: (request: Request, env: Env) => env.RELAY.getByName(new URL(request.url).pathname).fetch(request),
};
