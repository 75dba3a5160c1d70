import { describe, expect, it } from 'vitest';
import { postOnce } from '../../../infra/cli/jobs/post-once.ts';

/** Posts to an edge that gives these answers in turn; an error is a connection that breaks. */
async function post(...answers: (Response | Error)[]) {
  const keys: (string | null)[] = [];
  const send: typeof fetch = async (_, init) => {
    keys.push(new Headers(init?.headers).get('idempotency-key'));
    const answer = answers.shift();
    if (answer instanceof Response) return answer;
    throw answer;
  };
  const world = { fetch: send, pause: async () => {} };
  const { status } = await postOnce('http://edge.test/v1/uploads', {}, { model: 'm' }, world);
  return { status, keys };
}

const running = new Response('{}', { status: 409, headers: { 'x-should-retry': 'true' } });

describe('T4 A8 auricle upload and auricle project', () => {
  it.each([
    ['no answer came', new TypeError('fetch failed')],
    ['the edge is unavailable', new Response('{}', { status: 503 })],
    ['the first request is still running', running],
  ])('repeat a request once with the same key when %s', async (_, first) => {
    const { status, keys } = await post(first, Response.json({}, { status: 201 }));
    expect(status).toBe(201);
    expect(keys).toHaveLength(2);
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect(keys[1]).toBe(keys[0]);
  });

  it.each([201, 400, 409, 422, 429])('do not repeat a request that was answered with %i', async (status) => {
    const { keys } = await post(Response.json({}, { status }));
    expect(keys).toHaveLength(1);
  });
});
