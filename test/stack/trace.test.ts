import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, inject, it } from 'vitest';
import type { encodeSpans } from '../../shared/trace/exporter.ts';
import { type Clip, clipBytes, clips } from './clips.ts';
import { join } from './join.ts';
import type { Shared } from './running.ts';

let running: Shared;
beforeAll(async () => {
  running = await join();
}, 60_000);

const patience = { timeout: 20_000, interval: 50 };
const newTrace = () => crypto.randomUUID().replaceAll('-', '');
const logOf = (part: string) => readFileSync(path.join(running.state, 'logs', `${part}.log`), 'utf8');

/** The spans of a trace as the collector has them, with the service of each. */
async function spansOf(trace: string) {
  const answer = await fetch(`${inject('sharedStack')}/spans`);
  const posts = (await answer.json()) as ReturnType<typeof encodeSpans>[];
  const all = posts.flatMap(({ resourceSpans }) =>
    resourceSpans.flatMap(({ resource, scopeSpans }) => {
      const service = resource.attributes.find(({ key }) => key === 'service.name')?.value;
      return scopeSpans.flatMap(({ spans }) => spans.map((span) => ({ ...span, service: service?.stringValue })));
    }),
  );
  return all.filter(({ traceId }) => traceId === trace);
}

async function post(address: string, trace: string, body: FormData | string): Promise<string> {
  const token = await running.mint({ scope: 'transcribe uploads' });
  const traceparent = `00-${trace}-00f067aa0ba902b7-01`;
  const json = typeof body === 'string' && { 'content-type': 'application/json' };
  const headers = { authorization: `Bearer ${token}`, traceparent, ...json };
  const answer = await fetch(`${running.stack.url}${address}`, { method: 'POST', headers, body });
  expect([200, 201, 202], await answer.clone().text()).toContain(answer.status);
  await answer.text();
  return answer.headers.get('x-request-id') ?? '';
}

it('U10 R14 shows one trace from the caller over edge and agent to the engine', async () => {
  const trace = newTrace();
  const body = new FormData();
  body.append('model', 'reference-en');
  body.append('file', new Blob([clipBytes(clips.find(({ file }) => file === 'balance.wav') as Clip)]), 'balance.wav');
  const id = await post('/v1/audio/transcriptions', trace, body);
  await expect.poll(async () => (await spansOf(trace)).length, patience).toBeGreaterThanOrEqual(4);
  const spans = await spansOf(trace);
  const named = (name: string) => spans.find((one) => one.name === name);
  const edge = named('POST /v1/audio/transcriptions');
  const [call, agent, engine] = [named('call agent'), named('agent'), named('engine')];
  expect([edge, call, agent, engine].map((one) => one?.service)).toEqual([
    ...['auricle-edge', 'auricle-edge', 'auricle-agent', 'auricle-agent'],
  ]);
  expect(edge?.parentSpanId).toBe('00f067aa0ba902b7');
  expect([call, agent, engine].map((one) => one?.parentSpanId)).toEqual([edge?.spanId, call?.spanId, agent?.spanId]);
  expect(edge?.attributes).toContainEqual({ key: 'auricle.request', value: { stringValue: id } });
  await expect
    .poll(() => running.logs(), patience)
    .toMatch(new RegExp(`"agent":"[^"]+","event":"request","request":"${id}\\.1"`));
  await expect.poll(() => logOf('edge'), patience).toContain(`"request":"${id}"`);
});

it('R14 an upload joins the logs of edge and functions by its request id', async () => {
  const id = await post('/v1/uploads', newTrace(), JSON.stringify({ model: 'reference-en' }));
  await expect.poll(() => logOf('edge'), patience).toContain(`"request":"${id}"`);
  await expect.poll(() => logOf('functions'), patience).toContain(`"what":"call","request":"${id}"`);
});
