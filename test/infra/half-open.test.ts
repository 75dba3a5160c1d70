// Requests whose head never ends, at the servers of a pool.
import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import type { AgentContext } from '../../infra/pool/agent/request/agent-context.ts';
import { AGENT_HEADER_MS } from '../../infra/pool/agent/server/sealed-session.ts';
import { createAgentServer, type Health } from '../../infra/pool/agent/server/serve.ts';
import { ENGINE_HEADER_MS, serveInference } from '../../infra/pool/engine/http/serve.ts';
import type { Repository } from '../../infra/pool/engine/repository/repository.ts';

/** Answer to a head that does not end, once the server's limit for heads has passed. */
async function answerOf(server: Server): Promise<string> {
  onTestFinished(() => server.closeAllConnections());
  // How soon a limit is enforced is what Node leaves to each server.
  server.headersTimeout = 1;
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write('GET /healthz HTTP/1.1\r\nhost: ');
  return text(socket);
}

it('C12 agent and engine end half-open heads within their limits', async () => {
  const [agent, engine] = [
    createAgentServer({} as AgentContext, {} as Health),
    serveInference({} as Repository),
  ] as const;
  expect([agent.headersTimeout, engine.headersTimeout]).toEqual([AGENT_HEADER_MS, ENGINE_HEADER_MS]);
  for (const answer of await Promise.all([answerOf(agent), answerOf(engine)]))
    expect(answer).toMatch(/^HTTP\/1.1 408 /);
});
