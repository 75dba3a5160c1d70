import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { commandLine } from '../../../infra/cli/command-line.ts';

const queued = { realtime: 0, interactive: 0, default: 0, batch: 0 };
const load = { busy: 1, streams: 3, queued, serviceMs: 40, draining: false, engineReady: true };
const model = (name: string, ...languages: string[]) => ({ name, languages, task: 'transcribe', stage: 'full' });
const eu = { zone: 'eu', region: 'westeurope', platform: 'AKS', accelerator: 'gpu', slots: 4, health: 'ready' };
const us = { ...eu, zone: 'us', region: 'us-east-1', platform: 'EKS', accelerator: 'cpu', heardMs: 200 };

const list = {
  object: 'list',
  data: [
    {
      ...{ ...eu, pool: 'aks', agent: 'aks-0', device: 'h100', price: 4.5, streams: 512, heardMs: 940 },
      load: { ...load, power: 0.82, degraded: 1, queued: { ...queued, realtime: 2 } },
      models: [model('reference-zh', 'zh'), model('reference-en', 'en', 'en-GB')],
    },
    {
      ...{ ...eu, pool: 'aks', agent: 'aks-1', device: 'h100', price: 4.5, streams: 512, heardMs: 1_200 },
      ...{ health: 'draining', load: { ...load, queued: { ...queued, realtime: 1, batch: 7 } } },
      models: [model('reference-en', 'en', 'en-GB')],
    },
    { ...us, pool: 'eks', agent: 'eks-0', load: { ...load, streams: undefined }, models: [] },
  ],
  refused: [{ pool: 'gke', zone: 'us', why: 'another pool has the name', refusedMs: 10 }],
};

const seen: { path: string | undefined; body: string }[] = [];
const server = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  seen.push({ path: request.url, body });
  const drained = { object: 'pool.drain', pool: 'aks', agents: ['aks-0', 'aks-1'] };
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(request.method === 'POST' ? drained : list));
});
beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
afterAll(() => void server.close());

const run = (...words: string[]) => {
  const { port } = server.address() as AddressInfo;
  return commandLine([...words, '--edge', `http://127.0.0.1:${port}`, '--token', 'T'], {});
};

it('C6 A14 A20: pools are lines of a table, refused ones below', async () => {
  const { exit, out } = await run('pools');
  const cells = out
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/));
  expect(exit).toBe(0);
  expect(cells).toEqual([
    [
      'pool',
      'zone',
      'region',
      'platform',
      'device',
      '$/hour',
      'agents',
      'health',
      'heard',
      'streams',
      'slots',
      'queue',
    ].concat('power', 'degraded', 'models (languages)'),
    ['aks', 'eu', 'westeurope', 'AKS', 'h100', '9.00', '2', '1 ready, 1 draining', '0.9 s ago', '6/1024', '2/8'].concat(
      'realtime 3, batch 7',
      '82 %',
      'step 1',
      'reference-en (en en-GB), reference-zh (zh)',
    ),
    ['eks', 'us', 'us-east-1', 'EKS', 'cpu', '–', '1', 'ready', '0.2 s ago', '0/0', '1/4', '0', '–', '–', '–'],
    ['refused: gke (zone us): another pool has the name'],
  ]);
  expect(JSON.parse((await run('pools', '--json')).out)).toEqual(JSON.parse(JSON.stringify(list)));
});

it('C6: pool drain sends the order and names the agents', async () => {
  expect(await run('pool', 'drain', 'aks')).toMatchObject({ exit: 0, out: 'aks drains: aks-0, aks-1\n' });
  await run('pool', 'drain', 'aks', '--force');
  expect(seen.slice(-2)).toEqual([
    { path: '/v1/pools/aks/drain', body: '{}' },
    { path: '/v1/pools/aks/drain', body: '{"force":true}' },
  ]);
});
