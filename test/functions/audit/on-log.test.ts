import { HttpRequest } from '@azure/functions';
import { expect, it } from 'vitest';
import { onLog, onYears } from '../../../functions/audit/log/on-log.ts';
import type { Reading } from '../../../functions/audit/report/report-reads.ts';
import { loggedYears } from '../../../shared/audit/logged-years.ts';
import { refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import { makeCallers } from '../callers.ts';
import { ExportedLog } from './export/exported-log.ts';

const callers = await makeCallers();
const log = new ExportedLog();
await log.write('ann', 300);
const desk = { ...log.desk, settings: callers.settings, now: Date.now } as never;

const ask = async (path: string, claims: Record<string, unknown> = {}) => {
  const request = new HttpRequest({
    ...{ url: 'http://functions.test/', method: 'GET', params: { zone: 'eu', year: '2026', path } },
    headers: { authorization: `Bearer ${await callers.edgeToken('ann', claims)}` },
  });
  return onLog(desk, undefined)(request);
};

it('C12 what takes a token to read is kept by its reader alone', async () => {
  const headersOf = async (path: string) => {
    const { status, headers } = await ask(path, { operate: true });
    return { status, kept: (headers as Record<string, string>)['cache-control'] };
  };
  for (const path of ['tile/entries/000', 'tile/0/000'])
    expect(await headersOf(path)).toEqual({ status: 200, kept: 'private, max-age=31536000, immutable' });
  expect(await headersOf('checkpoint')).toEqual({ status: 200, kept: 'no-store' });
});

it('C9 entries of all tenants are given to operators only, whatever the edge has looked at', async () => {
  for (const claims of [{}, { operate: false }, { operate: 'true' }]) {
    expect(await ask('tile/entries/000', claims)).toMatchObject({
      status: 403,
      jsonBody: { error: { reason: 'scope_missing' } },
    });
    expect((await ask('tile/0/000', claims)).status).toBe(200);
  }
});

it('C9 which logs a zone has is told to the edge, and on record before', async () => {
  const noted: Reading[] = [];
  const list = async (zone: string, answer: Result<unknown> = ok(undefined)) => {
    const note = async (one: Reading) => {
      noted.push(one);
      return answer;
    };
    const request = new HttpRequest({
      ...{ url: 'http://functions.test/', method: 'GET', params: { zone } },
      headers: { authorization: `Bearer ${await callers.edgeToken('ann')}` },
    });
    return onYears({ ...(desk as object), heads: true } as never, { note } as never)(request);
  };
  const { data } = loggedYears.parse((await list('eu')).jsonBody);
  expect(data).toEqual([{ year: 2026, first: 301, size: 301, closed: false }]);
  expect(noted).toMatchObject([{ zone: 'eu', tenant: 'ann', action: 'logs' }]);
  // The log of checkpoints is about nobody.
  expect((await list('heads')).jsonBody).toEqual({ data: [] });
  expect(noted).toHaveLength(1);
  expect(await list('us')).toMatchObject({ jsonBody: { error: { reason: 'zone_unserved' } } });
  const untold = await list('eu', no(refuse('audit_unavailable')));
  expect([untold.status, JSON.stringify(untold).includes('2026')]).toEqual([503, false]);
});
