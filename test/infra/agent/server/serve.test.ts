import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import type { AgentContext } from '../../../../infra/pool/agent/request/agent-context.ts';
import { createAgentServer } from '../../../../infra/pool/agent/server/serve.ts';

const reported: string[] = [];
const context = {
  now: Date.now,
  enter: () => ({ signal: new AbortController().signal, leave: () => {} }),
  report: ({ reason }: { reason: string }) => reported.push(reason),
} as unknown as AgentContext;

let server: ReturnType<typeof createAgentServer>;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** Sends a text and collects what comes back until the other end closes or `wanted` was heard. */
async function say(lingerMs: number, text: string, wanted?: RegExp) {
  server = createAgentServer(context, { ready: () => true, failed: () => [] }, { lingerMs });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write(text);
  let heard = '';
  await new Promise<void>((resolve) => {
    socket.on('data', (part) => {
      heard += part;
      if (wanted?.test(heard)) resolve();
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve());
  });
  return { heard, socket };
}

const begin = (target: string) => `${target} HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\nsome of it`;

it.each([
  ['POST /v1/short', /^HTTP\/1.1 403 /],
  ['POST /nowhere', /^HTTP\/1.1 404 /],
  ['GET /healthz', /^HTTP\/1.1 200 /],
  ['HEAD /healthz', /^HTTP\/1.1 200 /],
  ['HEAD /v1/short', /^HTTP\/1.1 404 /],
])('%s: a body that never ends is not waited for once it is answered', async (target, status) => {
  const { heard, socket } = await say(5, begin(target));
  expect(heard).toMatch(status);
  expect(socket.closed).toBe(true);
});

it('a refused body that ends leaves the connection for the next request', async () => {
  const { socket } = await say(60_000, begin('POST /v1/short'), /403/);
  let heard = '';
  const answered = new Promise<void>((resolve) =>
    socket.on('data', (part) => {
      heard += part;
      if (heard.includes('ok\n')) resolve();
    }),
  );
  socket.write('x'.repeat(990));
  socket.write('GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n');
  await answered;
  expect(heard).toMatch(/^HTTP\/1.1 200 /);
  expect(reported.at(-1)).toBe('ticket_invalid');
  socket.destroy();
});
