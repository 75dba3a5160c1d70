import { createExecutionContext, waitOnExecutionContext } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { expect, it, vi } from 'vitest';
import { app } from '../../../edge/routes.ts';
import type { Bindings } from '../../../edge/settings.ts';
import { startAgent } from '../../fake/network.ts';
import { makeToken } from '../authority.ts';

it('C10 logs one line per request: of a session its agent and seconds, never content', async () => {
  const log = vi.spyOn(console, 'log').mockImplementation(() => {});
  const model = `model-${crypto.randomUUID().slice(0, 8)}`;
  const agent = await startAgent(model);
  const bindings = { ...env, LOG_REQUESTS: 'true' } as unknown as Bindings;
  const call = async (path: string, init: RequestInit = {}) => {
    const context = createExecutionContext();
    const request = new Request(`http://edge.test${path}`, init);
    const answer = await app.fetch(request, bindings, context as unknown as Parameters<typeof app.fetch>[2]);
    const text = await answer.text();
    await waitOnExecutionContext(context);
    return { id: answer.headers.get('x-request-id'), text };
  };
  const body = new FormData();
  body.append('model', model);
  body.append('file', new Blob([new Uint8Array(2_000)]), 'speech.wav');
  const headers = { authorization: `Bearer ${await makeToken()}` };
  const served = await call('/v1/audio/transcriptions', { method: 'POST', headers, body });
  const refused = await call('/v1/nothing?token=secret');
  const lines = log.mock.calls.map(([line]) => JSON.parse(line as string));
  log.mockRestore();
  const shared = { event: 'request', milliseconds: expect.any(Number) };
  expect(lines).toEqual([
    {
      ...shared,
      ...{ request: served.id, address: 'POST /v1/audio/transcriptions', status: 200, action: 'transcribe' },
      ...{ model, audioSeconds: expect.any(Number), agent: agent.name },
    },
    { ...shared, request: refused.id, address: 'GET /v1/nothing', status: 404 },
  ]);
});
