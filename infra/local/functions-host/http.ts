// HTTP trigger and the two administration routes of the host that the project uses.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { describe, type HostContext } from './context.ts';
import { bytesOf, invoke, newRequest } from './invoke.ts';
import { writeOutputs } from './outputs.ts';
import { fillSettings, type Matcher, routePattern } from './patterns.ts';
import type { HttpData, RegisteredFunction, Trigger } from './registry.ts';
import type { RunNow } from './timer.ts';

/** Largest request body, in bytes: the platform's own limit is 100 MB, nothing here sends more than metadata. */
const BODY_BYTES_MAX = 100 * 1024 * 1024;

export type Route = { target: RegisteredFunction; triggerName: string; methods: string[]; match: Matcher };

export function routeOf(context: HostContext, { target, triggerName, binding }: Trigger): Route {
  const route = fillSettings(binding.route ?? target.metadata.name, context.settings);
  return {
    target,
    triggerName,
    methods: (binding.methods ?? ['GET', 'POST']).map((method) => method.toUpperCase()),
    match: routePattern(`${context.hostJson.extensions.http.routePrefix}/${route}`),
  };
}

export async function serveHttp(
  context: HostContext,
  place: { host: string; port: number },
  routes: Route[],
  timers: Map<string, RunNow>,
): Promise<Server> {
  const server = createServer((request, response) => {
    const answering = answer(request, response, { context, routes, timers }).catch((error) => {
      context.log('error', `${request.method} failed: ${describe(error)}`);
      if (!response.headersSent) response.statusCode = 500;
      response.end();
    });
    void context.track(answering);
  });
  await new Promise<void>((settle, fail) => {
    server.once('error', fail);
    server.listen(place.port, place.host, settle);
  });
  return server;
}

interface Served {
  readonly context: HostContext;
  readonly routes: readonly Route[];
  readonly timers: ReadonlyMap<string, RunNow>;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { context, routes, timers }: Served,
): Promise<void> {
  const url = readUrl(request);
  if (!url) {
    response.statusCode = 400;
    response.end();
    return;
  }
  if (url.pathname === '/admin/host/status') {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ state: 'Running' }));
    return;
  }
  const timer = timers.get(/^\/admin\/functions\/([^/]+)$/.exec(url.pathname)?.[1] ?? '');
  if (timer && request.method === 'POST') {
    // The platform accepts at once; waiting for the run shows a test when to check.
    response.statusCode = (await timer()) ? 202 : 500;
    response.end();
    return;
  }
  const fitting = routes.flatMap((route) => {
    const params = route.match(url.pathname);
    return params ? [{ route, params }] : [];
  });
  const hit = fitting.find(({ route }) => route.methods.includes(request.method ?? ''));
  if (!hit) {
    response.statusCode = fitting.length > 0 ? 405 : 404;
    response.end();
    return;
  }
  const body = await readBody(request);
  if (!body) {
    response.statusCode = 413;
    response.end();
    return;
  }
  await call(context, hit.route, httpDataOf(request, url, hit.params, body), response);
}

/** Parses the address; `undefined` when it is invalid. */
function readUrl({ url = '/', headers }: IncomingMessage): URL | undefined {
  try {
    const read = new URL(url, `http://${headers.host ?? 'localhost'}`);
    decodeURIComponent(read.pathname);
    return read;
  } catch {
    return undefined;
  }
}

async function call(context: HostContext, route: Route, http: HttpData, response: ServerResponse): Promise<void> {
  const request = newRequest(route.target, route.triggerName, { http }, { traceParent: http.headers?.traceparent });
  const result = await invoke(route.target, request);
  await writeOutputs(context, route.target, { outputData: result.outputData ?? [] }, http.params ?? {});
  const answered = result.returnValue?.http;
  response.statusCode = answered ? Number(answered.statusCode ?? 200) : 204;
  for (const [name, value] of Object.entries(answered?.headers ?? {})) response.setHeader(name, value);
  for (const cookie of answered?.cookies ?? []) response.appendHeader('set-cookie', `${cookie.name}=${cookie.value}`);
  response.end(bytesOf(answered?.body));
}

async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function httpDataOf(request: IncomingMessage, url: URL, params: Record<string, string>, body: Buffer): HttpData {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers)) {
    headers[name] = Array.isArray(value) ? value.join(', ') : (value ?? '');
  }
  return {
    method: request.method ?? 'GET',
    url: url.href,
    headers,
    nullableHeaders: nullable(headers),
    query: Object.fromEntries(url.searchParams),
    params,
    nullableParams: nullable(params),
    body: body.length > 0 ? { bytes: body } : undefined,
  };
}

function nullable(values: Record<string, string>): Record<string, { value: string }> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { value }]));
}
