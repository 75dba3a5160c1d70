import { HttpRequest } from '@azure/functions';
import { expect, it } from 'vitest';
import { listYears } from '../../../functions/audit/read/list-years.ts';
import {
  AUDIT_FILES_PER_TENANT_MAX,
  AUDIT_RECEIPTS_PER_TENANT_MAX,
  onLog,
  onYears,
} from '../../../functions/audit/read/on-log.ts';
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

it('C12 only the reader caches answers that need a token', async () => {
  const headersOf = async (path: string) => {
    const { status, headers } = await ask(path, { operate: true });
    return { status, kept: (headers as Record<string, string>)['cache-control'] };
  };
  for (const path of ['tile/entries/000', 'tile/0/000'])
    expect(await headersOf(path)).toEqual({ status: 200, kept: 'private, max-age=31536000, immutable' });
  expect(await headersOf('checkpoint')).toEqual({ status: 200, kept: 'no-store' });
});

it('C9 only operators read entries of all tenants', async () => {
  for (const claims of [{}, { operate: false }, { operate: 'true' }]) {
    expect(await ask('tile/entries/000', claims)).toMatchObject({
      status: 403,
      jsonBody: { error: { reason: 'scope_missing' } },
    });
    expect((await ask('tile/0/000', claims)).status).toBe(200);
  }
});

it('C9 a list of a zone’s logs is recorded before the edge gets it', async () => {
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
    return onYears(desk as never, { note } as never)(request);
  };
  const { data } = loggedYears.parse((await list('eu')).jsonBody);
  expect(data).toEqual([{ year: 2026, first: 301, size: 301, closed: false }]);
  expect(noted).toMatchObject([{ zone: 'eu', tenant: 'ann', action: 'logs' }]);
  expect(await list('us')).toMatchObject({ jsonBody: { error: { reason: 'zone_unserved' } } });
  const untold = await list('eu', no(refuse('audit_unavailable')));
  expect([untold.status, JSON.stringify(untold).includes('2026')]).toEqual([503, false]);
});

it('C9 a flooding reader leaves slots to others, for files, receipts and lists', async () => {
  const story = new ExportedLog();
  await story.write('ann', 3);
  let open: () => void = () => {};
  const gate = new Promise<void>((settle) => {
    open = settle;
  });
  const read = async (...name: Parameters<typeof story.store.read>) => {
    await gate;
    return story.store.read(...name);
  };
  const there = { ...(desk as object), store: Object.assign(Object.create(story.store), { read }) } as never;
  const [files, years] = [onLog(there, undefined), onYears(there, undefined)];
  const tokens = { ann: await callers.edgeToken('ann'), bob: await callers.edgeToken('bob') };
  const of = (tenant: keyof typeof tokens, path?: string) => {
    const params = { zone: 'eu', year: '2026', path: path ?? '' };
    const headers = { authorization: `Bearer ${tokens[tenant]}` };
    const request = new HttpRequest({ url: 'http://functions.test/', method: 'GET', params, headers });
    return path === undefined ? years(request) : files(request);
  };
  const asked = [
    { path: undefined, most: AUDIT_RECEIPTS_PER_TENANT_MAX },
    { path: 'receipt/1', most: AUDIT_RECEIPTS_PER_TENANT_MAX },
    { path: 'checkpoint', most: AUDIT_FILES_PER_TENANT_MAX },
  ].map(({ path, most }) => {
    const own = Array.from({ length: most + 5 }, () => of('ann', path));
    const refused = new Promise<unknown[]>((settle) => {
      const found: unknown[] = [];
      for (const one of own) void one.then((answer) => found.push(answer) === 5 && settle([...found]));
    });
    return { most, own, refused, other: of('bob', path) };
  });
  // Nothing is read yet: who is beyond the bound is refused all the same.
  for (const { refused } of asked)
    for (const one of await refused)
      expect(one).toMatchObject({ status: 429, jsonBody: { error: { reason: 'allowance_concurrent' } } });
  open();
  for (const { most, own, other } of asked) {
    const answers = (await Promise.all(own)).map(({ status }) => status);
    expect(answers.filter((status) => status === 200)).toHaveLength(most);
    expect((await other).status).toBe(200);
  }
});

it('C9 the immutable part of a list of logs is read from storage once', async () => {
  const story = new ExportedLog();
  await story.write('ann', 3);
  story.now = Date.UTC(2027, 5, 1);
  await story.commit();
  await story.write('ann', 2);
  let asked = 0;
  const counted = new Proxy(story.store, {
    get: (store, name) => {
      if (name === 'read' || name === 'list') asked += 1;
      const value = Reflect.get(store, name);
      return typeof value === 'function' ? value.bind(store) : value;
    },
  });
  const first = await listYears(counted, 'eu');
  expect(first.map(({ year, closed }) => [year, closed])).toEqual([
    [2027, false],
    [2026, true],
  ]);
  asked = 0;
  expect(await listYears(counted, 'eu')).toEqual(first);
  // The newest log as it is committed, and as it is published.
  expect(asked).toBe(2);
  await story.write('ann', 4);
  expect((await listYears(counted, 'eu')).map(({ size }) => size)).toEqual([(first[0]?.size ?? 0) + 4, first[1]?.size]);
});

it('C9 there is no policy of a log that never was', async () => {
  const policyOf = async (year: string) => {
    const request = new HttpRequest({
      ...{ url: 'http://functions.test/', method: 'GET', params: { zone: 'eu', year, path: 'policy' } },
      headers: { authorization: `Bearer ${await callers.edgeToken('ann')}` },
    });
    return (await onLog(desk, undefined)(request)).status;
  };
  expect([await policyOf('2026'), await policyOf('1999'), await policyOf('2025')]).toEqual([200, 404, 404]);
});
