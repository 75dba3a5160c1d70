// The script of `helm test`, against doubles of an agent and of the edge.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { CHART, example, merge, only, render, run } from './helm.ts';
import type { Container } from './pod.ts';
import { environmentOf } from './pod.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-helm-'));
const token = path.join(folder, 'token');
writeFileSync(token, 'tenant-token\n');
afterAll(() => rmSync(folder, { recursive: true }));

/** Answers of both doubles, by path. */
let answers: Record<string, { status: number; body: string }>;
let requests: { path: string; authorization: string | undefined; body: string }[];
const server = http.createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { url: at = '', headers } = request;
  requests.push({ path: at, authorization: headers.authorization, body: Buffer.concat(chunks).toString('latin1') });
  const { status, body } = answers[at] ?? { status: 404, body: '' };
  response.writeHead(status).end(body);
});
beforeEach(async () => {
  answers = { '/readyz': { status: 200, body: 'ready' } };
  requests = [];
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(() => new Promise((resolve) => server.close(resolve)));

function runScript(transcribes: boolean) {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const environment = {
    ...{ AGENTS: url, EDGE_URL: url, MODEL: 'reference-en', EXPECTED: 'Balance' },
    ...{ TOKEN_FILE: transcribes ? token : '', CLIP_FILE: path.join(CHART, 'files/clip.opus') },
  };
  const pairs = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  return run('env', [...pairs, process.execPath, path.join(CHART, 'files/test.mjs')]);
}

it('passes when the agents are ready and the transcript has the words', async () => {
  answers['/v1/audio/transcriptions'] = { status: 200, body: '{"text":"I would like to check the balance"}' };
  const { code, output } = await runScript(true);
  expect(output).toMatch(/^ok .*\nok .*transcribes with reference-en\n$/);
  expect(code).toBe(0);
  const sent = requests.find(({ path: at }) => at === '/v1/audio/transcriptions');
  expect(sent?.authorization).toBe('Bearer tenant-token');
  expect(sent?.body).toContain('OggS');
});

it.each([
  ['an agent is not ready', '/readyz', { status: 503, body: 'not ready' }, /FAILED .*not ready: 503/],
  [
    'the transcript is another',
    '/v1/audio/transcriptions',
    { status: 200, body: '{"text":"no"}' },
    /transcribed as "no"/,
  ],
  ['the edge refuses', '/v1/audio/transcriptions', { status: 503, body: '{"code":"no_pool"}' }, /503 .*no_pool/],
])('fails when %s', async (_, at, answer, message) => {
  answers['/v1/audio/transcriptions'] = { status: 200, body: '{"text":"balance"}' };
  answers[at] = answer;
  const { code, output } = await runScript(true);
  expect(output).toMatch(message);
  expect(code).toBe(1);
});

it('checks the agents only when it has no token', async () => {
  const { code } = await runScript(false);
  expect(code).toBe(0);
  expect(requests.map(({ path: at }) => at)).toEqual(['/readyz']);
});

it('gets the fewest agents that the pool has, and the clip', async () => {
  const values = merge(example('aks-triton'), { scaling: { minReplicas: 2 }, test: { tokenSecret: 'tenant' } });
  const hooks = (await render(values)).filter(({ metadata }) => metadata.name === 'aks-westeurope-test');
  const { containers } = only(hooks, 'Pod').spec as { containers: readonly Container[] };
  const host = (ordinal: number) => `https://aks-westeurope-${ordinal}.aks-westeurope.pools.svc:8443`;
  expect(environmentOf(containers[0] as Container)).toMatchObject({
    ...{ AGENTS: `${host(0)},${host(1)}`, TOKEN_FILE: '/token/token', EDGE_URL: 'https://edge.example.com' },
  });
  const { binaryData } = only(hooks, 'ConfigMap') as unknown as { binaryData: Record<string, string> };
  expect(
    Buffer.from(binaryData['clip.opus'] ?? '', 'base64')
      .subarray(0, 4)
      .toString(),
  ).toBe('OggS');
});
