// A full storage account is a refusal with its reason, and no error 500.
import { HttpRequest } from '@azure/functions';
import { RestError } from '@azure/storage-blob';
import { describe, expect, it } from 'vitest';
import { openReporter } from '../../functions/audit/report/report.ts';
import { fromEdge } from '../../functions/caller/from-edge.ts';
import { findFullStores, onHealth } from '../../functions/health/on-health.ts';
import { ok } from '../../shared/result.ts';
import { isStorageFull } from '../../shared/storage-full.ts';
import { makeCallers } from './callers.ts';

const callers = await makeCallers();
const full = new RestError('Storage is full.', { statusCode: 507, code: 'InsufficientStorage' });
const silent = () => ({ elapsed: new Promise<never>(() => {}), cancel() {} });

describe('C11 T4: a full storage account', () => {
  it('is distinct from other errors', () => {
    const told = [
      full,
      Object.assign(new Error('write'), { code: 'ENOSPC' }),
      new Error('database or disk is full: SQLITE_FULL'),
      new Error('outer', { cause: full }),
    ];
    expect(told.map(isStorageFull)).toEqual([true, true, true, true]);
    const other = [new Error('no route'), new RestError('busy', { statusCode: 503 }), 'SQLITE_FULL', undefined];
    expect(other.map(isStorageFull)).toEqual([false, false, false, false]);
  });

  it('answers a request of the edge with 503 storage_full', async () => {
    const desk = ok({ settings: callers.settings, now: () => Date.now() });
    const handler = fromEdge(desk, async () => Promise.reject(full));
    const headers = { authorization: `Bearer ${await callers.edgeToken('acme')}` };
    const request = new HttpRequest({ method: 'POST', url: 'http://functions.test/api/uploads', headers });
    expect(await handler(request)).toMatchObject({
      status: 503,
      jsonBody: { error: { reason: 'storage_full', params: { component: 'functions' } } },
    });
    const broken = fromEdge(desk, async () => Promise.reject(new Error('a bug')));
    await expect(broken(request)).rejects.toThrow('a bug');
  });

  it('is the reason for which a report is refused', async () => {
    const store = { create: () => Promise.reject(full) };
    const reporter = openReporter({ store, hide: () => async () => '', now: () => 1, after: silent });
    const told = await reporter.report('eu', { type: 'operator.act', action: 'x' });
    expect(told).toMatchObject({ refusal: { reason: 'storage_full' } });
  });

  it('is in the health answer and its log', async () => {
    const lines: string[] = [];
    const there = { ensure: async () => {} };
    const stores = { blobs: { ensure: () => Promise.reject(full) }, jobs: there, rows: there, notices: there };
    const answer = await onHealth(stores, (line) => lines.push(line));
    expect(answer).toMatchObject({ status: 503, jsonBody: { stores: { blobs: { reached: false, full: true } } } });
    expect(lines).toEqual(['blobs: storage is full']);
    expect(await findFullStores(stores)).toEqual(['blobs']);
  });
});
