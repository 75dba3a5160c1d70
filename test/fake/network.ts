// The outside world of the Worker under test: agents by host name, and the way in.
import { createExecutionContext, waitOnExecutionContext } from 'cloudflare:test';
import { env, exports } from 'cloudflare:workers';
import { app } from '../../edge/routes.ts';
import { SNAPSHOT_AGE_MS } from '../../edge/routing/snapshot.ts';
import { makeToken } from '../edge/authority.ts';
import { FakeAgent, type Options } from './agent.ts';

const agents = new Map<string, FakeAgent>();

/** Additional hosts; tests add handlers, and each test starts with none. */
export const elsewhere = new Map<string, (request: Request) => Promise<Response>>();

/** Functions, by host name, whose health route does not answer; emptied after each test. */
export const silent = new Set<string>();

/** The clock of the isolate, the Durable Objects' included: the real one, moved on by the tests. */
const realNow = Date.now.bind(Date);
let ahead = 0;
Date.now = () => realNow() + ahead;
export const passTime = (ms: number): void => {
  ahead += ms;
};

const DAY_MS = 86_400_000;

/** Moves the clock to the start of a UTC day: none begins between the requests of a test. */
export const startDay = (): void => passTime(DAY_MS - (Date.now() % DAY_MS));

globalThis.fetch = async (input: RequestInfo | URL, init?: RequestInit) => {
  const request = new Request(input, init);
  const { hostname, pathname } = new URL(request.url);
  if (pathname === '/api/health' && !silent.has(hostname)) return Response.json({});
  const other = elsewhere.get(hostname);
  if (other) return other(request);
  const agent = agents.get(hostname);
  if (!agent) throw new TypeError('Network connection lost.');
  return agent.answer(request);
};

/** Takes every agent and every other host off the network. */
export function clearNetwork(): void {
  for (const agent of agents.values()) agent.leave();
  agents.clear();
  elsewhere.clear();
  silent.clear();
}

/** An agent that has joined its roster. Each test uses a model of its own name, since rosters outlive tests. */
export async function startAgent(
  model: string,
  options: Options & {
    languages?: string[];
    live?: boolean;
    hears?: FakeAgent['hears'];
    task?: FakeAgent['task'];
    accelerator?: FakeAgent['accelerator'];
    revision?: string;
    beside?: FakeAgent['beside'];
  } = {},
): Promise<FakeAgent> {
  const agent = await FakeAgent.make(options);
  agents.set(new URL(agent.endpoint).hostname, agent);
  agent.live = options.live ?? false;
  agent.hears = options.hears;
  agent.task = options.task ?? 'transcribe';
  agent.revision = options.revision ?? agent.revision;
  agent.beside = options.beside ?? [];
  agent.accelerator = options.accelerator ?? 'cpu';
  await agent.join([model], options.languages ?? ['en']);
  // Past the age at which the isolate asks the roster again.
  passTime(SNAPSHOT_AGE_MS);
  return agent;
}

/** A request as it comes from outside. */
export const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
  exports.default.fetch(new Request(`http://edge.test${path}`, init));

export interface Upload {
  readonly token?: string | null;
  readonly fields?: readonly (readonly [string, string])[];
  readonly file?: Uint8Array<ArrayBuffer>;
  readonly headers?: Record<string, string>;
  readonly path?: string;
}

/** A transcription request as the official JavaScript client builds it: the file first. */
export async function upload({ token, fields = [], file, headers = {}, path }: Upload): Promise<Response> {
  const form = new FormData();
  form.append('file', new Blob([file ?? new Uint8Array(2_000)]), 'speech.wav');
  for (const [name, value] of fields) form.append(name, value);
  const bearer = token === undefined ? await makeToken() : token;
  return ask(path ?? '/v1/audio/transcriptions', {
    method: 'POST',
    headers: { ...(bearer !== null && { authorization: `Bearer ${bearer}` }), ...headers },
    body: form,
  });
}

/** Status, code and text of a refusal, and that every refusal carries what it must. */
export async function readRefusal(answer: Response) {
  const body = (await answer.json()) as { error: { message: string; type: string; code: string; param: unknown } };
  return { status: answer.status, code: body.error.code, message: body.error.message };
}

/** The Worker called as a function, so that nothing between test and Worker can buffer a stream. */
export async function askDirectly(request: Request): Promise<{ answer: Response; settled: () => Promise<void> }> {
  const context = createExecutionContext();
  const answer = await app.fetch(request, env, context as unknown as Parameters<typeof app.fetch>[2]);
  return { answer, settled: () => waitOnExecutionContext(context) };
}
