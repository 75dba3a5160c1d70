import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { LoadFailure } from '../../../../shared/pool/heartbeat.ts';
import type { AgentContext } from '../request/agent-context.ts';
import { discard } from './body.ts';
import { AGENT_HEADER_MS } from './sealed-session.ts';
import type { TlsPair } from './tls.ts';
import { serveUnary } from './unary.ts';

/**
 * Interval of the check for connections over AGENT_HEADER_MS: Node's own is 30 s, which keeps half-open
 * requests as long.
 */
const AGENT_HEADER_CHECK_MS = 1_000;
/** Life of an idle connection: longer than that of the edge's, so that the edge closes first. */
const AGENT_IDLE_MS = 75_000;
/** Longest read of a body's remainder after its answer, as at the edge; then the connection ends. */
const AGENT_DRAIN_MS = 10_000;

export interface Health {
  /** Attested, engine ready, not draining. */
  ready(): boolean;
  /** Models that the engine failed to load. */
  failed(): readonly LoadFailure[];
}

type Route = (
  context: AgentContext,
  health: Health,
  incoming: IncomingMessage,
  response: ServerResponse,
) => Promise<void> | void;

const answerText = (response: ServerResponse, status: number, text: string, type = 'text/plain; charset=utf-8') => {
  response.writeHead(status, { 'content-type': type }).end(text);
};

const routes: Record<string, Route> = {
  'POST /v1/short': (context, _, incoming, response) => serveUnary(context, incoming, response),
  // An upgrade is handled elsewhere; this answers a request without one.
  'GET /v1/stream': (_context, _health, _incoming, response) =>
    answerText(response, 426, '{"reason":"upgrade_missing"}', 'application/json'),
  'GET /healthz': (_context, _health, _incoming, response) => answerText(response, 200, 'ok\n'),
  'GET /readyz': (_context, health, _incoming, response) =>
    answerText(
      response,
      health.ready() ? 200 : 503,
      [
        health.ready() ? 'ready' : 'not ready',
        ...health.failed().map(({ model, reason }) => `failed to load ${model}: ${reason}`),
        '',
      ].join('\n'),
    ),
  'GET /metrics': async (context, _health, _incoming, response) =>
    answerText(response, 200, await context.metrics.text(), context.metrics.contentType),
};

/** Bounds the rest of a body after its answer to `ms`, so that it does not hold the connection. */
function endLingering(incoming: IncomingMessage, response: ServerResponse, ms: number) {
  response.once('finish', () => {
    if (incoming.complete) return;
    const late = setTimeout(() => incoming.complete || incoming.socket.destroy(), ms);
    incoming.once('end', () => clearTimeout(late));
    late.unref();
  });
}

export type AgentServer = Server | TlsServer;

const serverOptions = {
  keepAliveTimeout: AGENT_IDLE_MS,
  headersTimeout: AGENT_HEADER_MS,
  connectionsCheckingInterval: AGENT_HEADER_CHECK_MS,
  // A body takes as long as its ticket allows.
  requestTimeout: 0,
};

/** Creates the agent's HTTP server, not yet listening: TLS 1.3 with `tls`, else plain. Tests pass a shorter `lingerMs`. */
export function createAgentServer(
  context: AgentContext,
  health: Health,
  { lingerMs = AGENT_DRAIN_MS, tls }: { readonly lingerMs?: number; readonly tls?: TlsPair | undefined } = {},
): AgentServer {
  const serve = (incoming: IncomingMessage, response: ServerResponse) => {
    endLingering(incoming, response, lingerMs);
    const path = (incoming.url ?? '').split('?')[0];
    // The server leaves the body of the answer to a HEAD out.
    const method = incoming.method === 'HEAD' && !path?.startsWith('/v1/') ? 'GET' : incoming.method;
    const route = routes[`${method} ${path}`];
    if (!route) {
      discard(incoming);
      return answerText(response, 404, 'not found\n');
    }
    Promise.resolve(route(context, health, incoming, response)).catch((error) => {
      context.bug(error);
      response.destroy();
    });
  };
  if (!tls) return createServer(serverOptions, serve);
  const handshake = { minVersion: 'TLSv1.3' as const, handshakeTimeout: AGENT_HEADER_MS };
  return createTlsServer({ ...serverOptions, ...handshake, ...tls }, serve);
}
