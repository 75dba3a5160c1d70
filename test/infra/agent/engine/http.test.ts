import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createEngineClient } from '../../../../infra/pool/agent/engine/http.ts';
import { ENGINE_ANSWER_BYTES } from '../../../../infra/pool/agent/engine/limits.ts';
import { makeBody } from '../../../../shared/kserve/body.ts';

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
  const made = createEngineClient(url, connections);
  opened.push(made);
  return made;
}

const post = (bytes: number) => makeBody('{}', [new Uint8Array(bytes).fill(7), Uint8Array.of(1, 2)]);

describe('HTTP client of an engine', () => {
  it.each([3, 300_000])('sends a body of %i bytes whole with its length', async (bytes) => {
    const { url } = await serve((incoming, outgoing, body) => {
      outgoing.setHeader('seen', `${incoming.method} ${incoming.url} ${incoming.headers['content-length']}`);
      outgoing.end(body);
    });
    const body = post(bytes);
    const answer = await connect(url, 1).request({ method: 'POST', path: '/infer', body, signal: forever });
    expect(answer.status).toBe(200);
    expect(answer.headers.seen).toBe(`POST /engine/infer ${bytes + 4}`);
    expect(Buffer.compare(answer.body, Buffer.concat(body.chunks))).toBe(0);
  });

  it('uses a connection again', async () => {
    const { url, sockets } = await serve((_, outgoing) => void outgoing.end('ok'));
    const { request } = connect(url, 4);
    for (let time = 0; time < 9; time++) await request({ method: 'GET', path: '/', signal: forever });
    // A connection becomes free in the turn after its response.
    expect(sockets()).toBeLessThanOrEqual(2);
  });

  it('joins the chunks of a response', async () => {
    const { url } = await serve((_, outgoing) => {
      outgoing.write('one ');
      setImmediate(() => outgoing.end('two'));
    });
    const answer = await connect(url, 1).request({ method: 'GET', path: '/', signal: forever });
    expect(Buffer.from(answer.body).toString()).toBe('one two');
  });

  it('rejects when the response is cut off', async () => {
    const { url } = await serve((_, outgoing) => {
      outgoing.setHeader('content-length', '10');
      outgoing.write('half');
      setImmediate(() => outgoing.destroy());
    });
    await expect(connect(url, 1).request({ method: 'GET', path: '/', signal: forever })).rejects.toThrow();
  });

  it('closes the connection of an aborted request and no other', async () => {
    const gone = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const { url } = await serve((incoming, outgoing) => {
      if (incoming.url?.endsWith('/quick')) return void outgoing.end('ok');
      outgoing.on('close', () => gone.resolve());
      asked.resolve();
    });
    const { request } = connect(url, 2);
    const cancel = new AbortController();
    const slow = request({ method: 'POST', path: '/slow', body: post(4), signal: cancel.signal });
    await asked.promise;
    cancel.abort();
    await expect(slow).rejects.toThrow('aborted');
    await gone.promise;
    expect((await request({ method: 'GET', path: '/quick', signal: forever })).status).toBe(200);
  });

  it('opens a connection after the engine has closed one', async () => {
    const { url, server, sockets } = await serve((_, outgoing) => void outgoing.end('ok'));
    const { request } = connect(url, 4);
    await request({ method: 'GET', path: '/', signal: forever });
    server.closeAllConnections();
    await expect.poll(async () => (await request({ method: 'GET', path: '/', signal: forever })).status).toBe(200);
    expect(sockets()).toBeGreaterThan(1);
  });

  it('reads a response with connection: close whole', async () => {
    const { url, sockets } = await serve((_, outgoing) => {
      outgoing.setHeader('connection', 'close');
      outgoing.end('last words');
    });
    const { request } = connect(url, 4);
    for (let time = 0; time < 3; time++) {
      const answer = await request({ method: 'GET', path: '/', signal: forever });
      expect(Buffer.from(answer.body).toString()).toBe('last words');
    }
    expect(sockets()).toBe(3);
  });

  it('rejects with the system error when the port is closed', async () => {
    const { url, server } = await serve(() => {});
    await new Promise((resolve) => server.close(resolve));
    const call = connect(url, 1).request({ method: 'GET', path: '/', signal: forever });
    await expect(call).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('rejects an aborted queued request at once and never sends it', async () => {
    const seen: string[] = [];
    const held: ServerResponse[] = [];
    const { url } = await serve((incoming, outgoing) => {
      seen.push(String(incoming.url));
      held.push(outgoing);
    });
    // One connection, and four for readiness checks.
    const { request } = connect(url, 1);
    const first = Array.from({ length: 5 }, () => request({ method: 'GET', path: '/first', signal: forever }));
    await expect.poll(() => held.length).toBe(5);
    const cancel = new AbortController();
    const second = request({ method: 'GET', path: '/second', signal: cancel.signal });
    const third = request({ method: 'GET', path: '/third', signal: forever });
    cancel.abort();
    await expect(second).rejects.toThrow('aborted');
    for (const outgoing of held.splice(0)) outgoing.end();
    await Promise.all(first);
    await expect.poll(() => held.length).toBe(1);
    held[0]?.end();
    await third;
    expect(seen.filter((path) => path.endsWith('/second'))).toEqual([]);
  });

  it.each(['content-length', 'chunked'])('rejects a response over engineAnswerBytes (%s)', async (framing) => {
    const { url } = await serve((_, outgoing) => {
      if (framing === 'content-length') outgoing.setHeader('content-length', ENGINE_ANSWER_BYTES + 1);
      outgoing.on('error', () => {});
      outgoing.end(Buffer.alloc(ENGINE_ANSWER_BYTES + 1));
    });
    const response = connect(url, 1).request({ method: 'GET', path: '/', signal: forever });
    await expect(response).rejects.toMatchObject({ code: 'UND_ERR_RES_EXCEEDED_MAX_SIZE' });
  });

  it.each(['SSH-2.0-OpenSSH\r\n\r\n', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`])(
    'rejects what is not HTTP, and a head over engineHeadBytes',
    async (bytes) => {
      const { url, server } = await serve(() => {});
      server.on('connection', (socket) => socket.end(bytes));
      await expect(connect(url, 1).request({ method: 'GET', path: '/', signal: forever })).rejects.toThrow();
    },
  );
});
