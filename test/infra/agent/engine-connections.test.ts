import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { openConnections } from '../../../infra/pool/agent/engine-connections.ts';
import { makeBody } from '../../../shared/kserve/body.ts';

type Serve = (incoming: IncomingMessage, answer: ServerResponse, body: Buffer) => void;

const opened: { close(): void }[] = [];
afterEach(() => {
  for (const one of opened.splice(0)) one.close();
});
const forever = new AbortController().signal;

async function serve(answer: Serve): Promise<{ url: string; server: Server; sockets: () => number }> {
  let sockets = 0;
  const server = createServer(async (incoming, outgoing) => {
    const parts: Buffer[] = [];
    for await (const part of incoming) parts.push(part as Buffer);
    answer(incoming, outgoing, Buffer.concat(parts));
  });
  server.on('connection', () => {
    sockets += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  opened.push({
    close() {
      server.closeAllConnections();
      server.close();
    },
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/engine/`, server, sockets: () => sockets };
}

function connect(url: string, connections: number) {
  const made = openConnections(url, connections);
  opened.push(made);
  return made;
}

const post = (bytes: number) => makeBody('{}', [new Uint8Array(bytes).fill(7), Uint8Array.of(1, 2)]);

describe('connections to an engine', () => {
  it.each([3, 300_000])('carry a body of %i bytes whole, and say how long it is', async (bytes) => {
    const { url } = await serve((incoming, outgoing, body) => {
      outgoing.setHeader('seen', `${incoming.method} ${incoming.url} ${incoming.headers['content-length']}`);
      outgoing.end(body);
    });
    const body = post(bytes);
    const answer = await connect(url, 1).call({ method: 'POST', path: '/infer', body, signal: forever });
    expect(answer.status).toBe(200);
    expect(answer.headers.seen).toBe(`POST /engine/infer ${bytes + 4}`);
    expect(Buffer.compare(answer.body, Buffer.concat(body.chunks))).toBe(0);
  });

  it('are kept for the next call', async () => {
    const { url, sockets } = await serve((_, outgoing) => void outgoing.end('ok'));
    const { call } = connect(url, 4);
    for (let time = 0; time < 9; time++) await call({ method: 'GET', path: '/', signal: forever });
    // One rests for a turn of the event loop before it is used again.
    expect(sockets()).toBeLessThanOrEqual(2);
  });

  it('put the pieces of an answer together', async () => {
    const { url } = await serve((_, outgoing) => {
      outgoing.write('one ');
      setImmediate(() => outgoing.end('two'));
    });
    const answer = await connect(url, 1).call({ method: 'GET', path: '/', signal: forever });
    expect(Buffer.from(answer.body).toString()).toBe('one two');
  });

  it('give no answer when it is cut off', async () => {
    const { url } = await serve((_, outgoing) => {
      outgoing.setHeader('content-length', '10');
      outgoing.write('half');
      setImmediate(() => outgoing.destroy());
    });
    await expect(connect(url, 1).call({ method: 'GET', path: '/', signal: forever })).rejects.toThrow();
  });

  it('are dropped by who aborts, and by nobody else', async () => {
    const gone = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const { url } = await serve((incoming, outgoing) => {
      if (incoming.url?.endsWith('/quick')) return void outgoing.end('ok');
      outgoing.on('close', () => gone.resolve());
      asked.resolve();
    });
    const { call } = connect(url, 2);
    const cancel = new AbortController();
    const slow = call({ method: 'POST', path: '/slow', body: post(4), signal: cancel.signal });
    await asked.promise;
    cancel.abort();
    await expect(slow).rejects.toThrow('aborted');
    await gone.promise;
    expect((await call({ method: 'GET', path: '/quick', signal: forever })).status).toBe(200);
  });

  it('that the engine has closed meanwhile are not used again', async () => {
    const { url, server, sockets } = await serve((_, outgoing) => void outgoing.end('ok'));
    const { call } = connect(url, 4);
    await call({ method: 'GET', path: '/', signal: forever });
    server.closeAllConnections();
    await expect.poll(async () => (await call({ method: 'GET', path: '/', signal: forever })).status).toBe(200);
    expect(sockets()).toBeGreaterThan(1);
  });

  it('end with an answer that says so, and that is told whole', async () => {
    const { url, sockets } = await serve((_, outgoing) => {
      outgoing.setHeader('connection', 'close');
      outgoing.end('last words');
    });
    const { call } = connect(url, 4);
    for (let time = 0; time < 3; time++) {
      const answer = await call({ method: 'GET', path: '/', signal: forever });
      expect(Buffer.from(answer.body).toString()).toBe('last words');
    }
    expect(sockets()).toBe(3);
  });

  it('give no answer when nobody listens, and say why', async () => {
    const { url, server } = await serve(() => {});
    await new Promise((resolve) => server.close(resolve));
    const call = connect(url, 1).call({ method: 'GET', path: '/', signal: forever });
    await expect(call).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('never carry a call that was aborted while it waited for one', async () => {
    const seen: string[] = [];
    const held: ServerResponse[] = [];
    const { url } = await serve((incoming, outgoing) => {
      seen.push(String(incoming.url));
      held.push(outgoing);
    });
    // One connection, and the four that are there for health checks.
    const { call } = connect(url, 1);
    const first = Array.from({ length: 5 }, () => call({ method: 'GET', path: '/first', signal: forever }));
    await expect.poll(() => held.length).toBe(5);
    const cancel = new AbortController();
    const second = call({ method: 'GET', path: '/second', signal: cancel.signal });
    const third = call({ method: 'GET', path: '/third', signal: forever });
    cancel.abort();
    await expect(second).rejects.toThrow('aborted');
    for (const outgoing of held.splice(0)) outgoing.end();
    await Promise.all(first);
    await expect.poll(() => held.length).toBe(1);
    held[0]?.end();
    await third;
    expect(seen.filter((path) => path.endsWith('/second'))).toEqual([]);
  });
});
