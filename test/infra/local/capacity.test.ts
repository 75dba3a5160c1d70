// The capacity of the storage emulator: full, it refuses writes before it has done anything.
import { rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { Capacity, isGrowing, refuseWhenFull } from '../../../infra/local/part/capacity.ts';
import { folderForTest } from './folder.ts';

it('C11: is full at its quota, warns once a minute, and recovers', () => {
  const folder = folderForTest();
  const lines: string[] = [];
  let now = 0;
  const capacity = new Capacity({ folder, now: () => now, log: (line) => lines.push(line) });
  const later = (ms: number) => {
    now += ms;
    return capacity.full;
  };
  expect(capacity.full).toBe(false);
  writeFileSync(path.join(folder, 'blob.json'), 'x'.repeat(100));
  writeFileSync(path.join(folder, 'quota'), '100');
  expect([later(300), later(300), later(60_000)]).toEqual([true, true, true]);
  expect(lines).toEqual(Array(2).fill(`storage is full: ${folder} takes nothing more`));
  writeFileSync(path.join(folder, 'quota'), '1000000');
  expect(later(300)).toBe(false);
  writeFileSync(path.join(folder, 'quota'), '0');
  expect(later(300)).toBe(true);
  rmSync(path.join(folder, 'quota'));
  expect(later(300)).toBe(false);
});

it('C11: refuses writes with 507 and a code; reads and leases continue', async () => {
  const server = createServer((_request, response) => response.end('served'));
  let full = false;
  refuseWhenFull(server, {
    get full() {
      return full;
    },
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/account/c/b`;
  const ask = async (method: string, query = '') => {
    const answer = await fetch(`${base}${query}`, { method, ...(method === 'PUT' && { body: 'x'.repeat(1_000) }) });
    await answer.arrayBuffer();
    return [answer.status, answer.headers.get('x-ms-error-code')];
  };
  expect(await ask('PUT')).toEqual([200, null]);
  full = true;
  expect(await ask('PUT')).toEqual([507, 'InsufficientStorage']);
  expect(await ask('GET')).toEqual([200, null]);
  expect(await ask('DELETE')).toEqual([200, null]);
  expect(await ask('PUT', '?comp=lease')).toEqual([200, null]);
  expect(isGrowing({ method: 'PUT', url: '/a?comp=block' })).toBe(true);
});
