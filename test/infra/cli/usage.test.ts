import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { commandLine } from '../../../infra/cli/command-line.ts';
import { hoursOf, priceRows } from '../../../infra/cli/pools/usage.ts';

const row = (tenant: string, pool: string, seconds: number) => ({ tenant, zone: 'eu', pool, requests: 2, seconds });
const agent = (pool: string, price?: number) => ({ pool, zone: 'eu', health: 'ready', ...(price && { price }) });

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://edge');
  const isLast = searchParams.get('after') === 'eu/acme';
  const first = { data: [row('acme', 'aks', 7_200)], next: 'eu/acme' };
  const page = isLast ? { data: [row('beta', 'aks', 3_600), row('beta', '', 60)] } : first;
  const pools = { data: [agent('aks', 4.5), { ...agent('aks', 9), health: 'gone' }] };
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(pathname === '/v1/pools' ? pools : { month: searchParams.get('month'), ...page }));
});
beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
afterAll(() => void server.close());

const run = (...words: string[]) => {
  const { port } = server.address() as AddressInfo;
  return commandLine(['usage', ...words, '--edge', `http://127.0.0.1:${port}`, '--token', 'T'], {});
};

it('A1 prints a line for each tenant and pool of a month, with its price', async () => {
  const { exit, out } = await run('--month', '2025-11');
  expect(exit).toBe(0);
  // A month of 720 hours at 4.50 dollars for three hours of audio.
  expect(out.trimEnd().split('\n')).toEqual([
    'month,tenant,zone,pool,requests,audio_seconds,dollars_per_hour,dollars',
    '2025-11,acme,eu,aks,2,7200.000,1080.0000,2160.00',
    '2025-11,beta,eu,aks,2,3600.000,1080.0000,1080.00',
    '2025-11,beta,eu,,2,60.000,,',
  ]);
});

it('A1 prints one tenant, at the price that follows from all', async () => {
  const { out } = await run('--month', '2025-11', '--tenant', 'beta');
  expect(out.trimEnd().split('\n').slice(1)).toEqual([
    '2025-11,beta,eu,aks,2,3600.000,1080.0000,1080.00',
    '2025-11,beta,eu,,2,60.000,,',
  ]);
});

it('A1 refuses what is no month', async () => {
  expect((await run('--month', 'November')).exit).toBe(2);
});

it('A1 names no price where an agent of the pool has none', () => {
  const rows = [row('acme', 'aks', 3_600)];
  expect(priceRows(rows, [agent('aks', 2), agent('aks')], 10)).toEqual(rows);
  expect(priceRows(rows, [agent('aks', 2), agent('aks', 1)], 10)).toEqual([{ ...rows[0], hourly: 30 }]);
});

it('A1 counts the hours of a month until now', () => {
  expect(hoursOf('2026-11', Date.UTC(2026, 10, 2))).toBe(24);
  expect(hoursOf('2026-02', Date.UTC(2026, 10, 2))).toBe(28 * 24);
  expect(hoursOf('2026-12', Date.UTC(2026, 10, 2))).toBe(0);
});
