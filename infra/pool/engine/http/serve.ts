import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { describeBug } from '../../../../shared/bug.ts';
import { log } from '../log.ts';
import { refuse } from '../refuse.ts';
import type { Repository } from '../repository/repository.ts';
import { type Answer, json, refused, text } from './answer.ts';
import { renderMetrics } from './metrics.ts';
import { BodyBudget, readBody } from './read-body.ts';
import { routes } from './routes.ts';

/** Open client connections; the kernel refuses more. */
const ENGINE_CONNECTIONS_MAX = 512;
/** Longest arrival of request headers. */
export const ENGINE_HEADER_MS = 10_000;
/** Interval of the check for connections over ENGINE_HEADER_MS and ENGINE_REQUEST_MS: Node's own is 30 s. */
const ENGINE_HEADER_CHECK_MS = 1_000;
/** Longest arrival of a whole request body. */
const ENGINE_REQUEST_MS = 120_000;
/** Life of an idle connection: longer than that of clients, so that they close first. */
const ENGINE_KEEP_ALIVE_MS = 65_000;

function write(response: ServerResponse, { status, headers, chunks }: Answer): void {
  if (response.destroyed) return;
  const length = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
  response.writeHead(status, { ...headers, 'content-length': length });
  for (const chunk of chunks) response.write(chunk);
  response.end();
}

function decodeName(name: string | undefined): string {
  try {
    return decodeURIComponent(name ?? '');
  } catch {
    return '';
  }
}

async function answer(
  repository: Repository,
  budget: BodyBudget,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Answer> {
  const path = (request.url ?? '/').split('?', 1)[0]!;
  const matching = routes.filter((route) => route.path.test(path));
  const route = matching.find(({ method }) => method === request.method);
  if (!route) {
    if (matching.length === 0) return refused(refuse('NOT_FOUND', 'there is nothing at this address').refusal);
    return refused(refuse('METHOD', `this address answers ${matching[0]!.method} only`).refusal);
  }
  // A disconnected client's waiting request is dropped.
  const gone = new AbortController();
  let held = 0;
  let over = false;
  response.once('close', () => {
    over = true;
    budget.give(held);
    if (!response.writableFinished) gone.abort();
  });
  const body = await readBody(request, budget, (bytes) => {
    if (over) budget.give(bytes);
    else held += bytes;
  });
  if (!body.ok)
    return { ...refused(body.refusal), headers: { 'content-type': 'application/json', connection: 'close' } };
  const { model, version } = route.path.exec(path)?.groups ?? {};
  return route.act(repository, {
    model: decodeName(model),
    version: version === undefined ? undefined : Number(version),
    headers: request.headers,
    body: body.value,
    signal: gone.signal,
  });
}

/**
 * Serves the inference port. Unexpected errors become a 500 without details; their class and location are
 * logged.
 */
export function serveInference(repository: Repository): Server {
  const budget = new BodyBudget();
  const connectionsCheckingInterval = ENGINE_HEADER_CHECK_MS;
  const server = createServer({ connectionsCheckingInterval }, (request, response) => {
    answer(repository, budget, request, response)
      .catch((error: unknown) => {
        // Messages may quote tensors and requests.
        if (!response.destroyed) log('internal error', { ...describeBug(error) });
        return json({ error: 'internal error' }, 500);
      })
      .then((ready) => write(response, ready));
  });
  server.maxConnections = ENGINE_CONNECTIONS_MAX;
  server.headersTimeout = ENGINE_HEADER_MS;
  server.requestTimeout = ENGINE_REQUEST_MS;
  server.keepAliveTimeout = ENGINE_KEEP_ALIVE_MS;
  return server;
}

export function serveMetrics(repository: Repository): Server {
  return createServer((request, response) => {
    if (request.url !== '/metrics') return write(response, json({ error: 'only /metrics is here' }, 404));
    write(response, text(renderMetrics(repository.served), 'text/plain; version=0.0.4; charset=utf-8'));
  });
}
