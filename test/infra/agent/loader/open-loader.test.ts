import promises from 'node:fs/promises';
import path from 'node:path';
import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { openLoader } from '../../../../infra/pool/agent/loader/open-loader.ts';
import { LoadingEngine } from '../../../fake/loading-engine.ts';
import { temporary } from '../store/fixtures.ts';

it('T6 logs a mounted repository that is away, and goes on', async () => {
  const [repository, own] = [await temporary(), await temporary()];
  const lines: string[] = [];
  let now = 1_000_000;
  const loader = await openLoader({
    settings: {
      ...{ store: path.join(own, 'store'), repository: path.join(own, 'engine'), target: 'x86_64' },
      bytes: { engine: 1e9, ram: 1e9, ssd: 1e9 },
    },
    ...{ repository, engine: new LoadingEngine(), registry: new Registry(), signers: [], call: undefined },
    releaseMap: { current: () => undefined },
    log: (event, fields) => lines.push(`${event} ${fields?.model} ${fields?.detail}`),
    now: () => now,
    run: () => Promise.reject(new Error('no model runs')),
    onChange: async () => {},
  });
  await loader.refresh();
  expect(lines).toEqual([]);
  await promises.rm(repository, { recursive: true });
  for (const _ of [1, 2]) {
    now += 10_000;
    await loader.refresh();
  }
  expect(lines).toEqual([expect.stringContaining('model-broken AURICLE_MODELS ENOENT')]);
  expect(loader.failures()).toEqual([]);
});
