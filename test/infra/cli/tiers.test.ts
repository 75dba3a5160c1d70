// `auricle model where` and `auricle tiers` against an edge of fixed answers.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readArguments } from '../../../infra/cli/arguments.ts';
import { tiers, where } from '../../../infra/cli/models/tiers.ts';

const REVISION = `sha256:${'ab'.repeat(32)}`;
const NOW = Date.parse('2026-11-01T00:00:00Z');

const part = {
  ...{ tier: 'cold', files: 2, bytes: 1_500_000_000, days: 40, minimumDays: 90, gbMonth: 0.0036, monthly: 0.0054 },
  ...{ floor: 'archive', idleDays: 200, horizonDays: 200, expectedReads: 1 },
  costs: { hot: 0.2, cool: 0.1, cold: 0.05, archive: 0.04 },
  move: {
    to: 'archive',
    rule: 'cheaper',
    fees: { early: 0.01, read: 0.02, write: 0.01, total: 0.04 },
    savesMonthly: 0.004,
  },
};
const row = { revision: REVISION, stage: 'full', aliases: ['stable'], needs: [], used: NOW, uses: 3, complete: true };
const agent = (name: string, models: object[]) => ({ agent: name, pool: 'aks', models });
const residency = { score: 0.12, rate: 0.6, saves: 0.2, bytes: 1e9, leases: 2, floor: 'gpu', why: 'pinned' };
const served = (tier?: string) => ({
  ...{ name: 'reference-en', task: 'transcribe', languages: ['en'], revision: REVISION, precision: 'fp32' },
  ...{ stage: 'full', loaded: 1, ...(tier ? { tier } : { residency }) },
});
const summary = ['hot', 'cool', 'cold', 'archive'].map((tier) => ({
  tier,
  revisions: 1,
  files: 2,
  bytes: 5e6,
  monthly: 2,
}));
const answers: Record<string, unknown> = {
  '/v1/models/reference-en/tiers': { model: 'reference-en', prices: 'US East', revisions: [{ ...row, parts: [part] }] },
  '/v1/pools': {
    data: [
      agent('one', [served(), { ...served('ram'), name: 'mounted' }]),
      agent('two', [served('ssd')]),
      agent('three', []),
    ],
  },
  '/v1/models/whisper-1/tiers': { model: 'whisper-1', prices: 'US East', revisions: [] },
  '/v1/names': { data: [{ name: 'whisper-1', model: 'reference-en', since: 1 }] },
  '/v1/models/mounted/tiers': { model: 'mounted', prices: 'US East', revisions: [] },
  '/v1/tiers': { prices: 'US East', tiers: summary },
};

const server = createServer(({ url = '' }, response) => {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(answers[url]));
});
beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
afterAll(() => server.close());

const run = (command: typeof where, ...words: string[]) => {
  const { port } = server.address() as AddressInfo;
  const given = readArguments([...words, '--edge', `http://127.0.0.1:${port}`]);
  if ('problem' in given) throw new Error(given.problem);
  return command(given, {});
};

it('C8 model where shows the blob tier and each agent with its tier', async () => {
  const answer = await run(where, 'model', 'where', 'reference-en');
  expect(answer.text).toBe('abababababab  full (stable)  cold  1.5 GB  one loaded, two ssd');
  const agents = [
    { agent: 'one', pool: 'aks', tier: 'loaded' },
    { agent: 'two', pool: 'aks', tier: 'ssd' },
  ];
  expect(answer.value).toMatchObject({ model: 'reference-en', revisions: [{ revision: REVISION, agents }] });
});

it('C8 model where shows agents with a revision that is not registered', async () => {
  const { text, value } = await run(where, 'model', 'where', 'mounted');
  expect(text).toBe('abababababab  not registered  not stored    one ram');
  expect(value).toMatchObject({ unregistered: [{ revision: REVISION, agents: [{ agent: 'one', tier: 'ram' }] }] });
});

it('C8 U7 model where and tiers explain take a name of the fleet', async () => {
  const [named, itself] = await Promise.all(
    ['whisper-1', 'reference-en'].map((name) => run(where, 'model', 'where', name)),
  );
  expect(named).toEqual(itself);
  expect((await run(tiers, 'tiers', 'explain', 'whisper-1')).text).toContain('full (stable)');
});

it('C8 tiers shows what each tier holds and costs', async () => {
  const { text } = await run(tiers, 'tiers');
  expect(text.split('\n')[0]).toBe('hot      1 revision  2 files  5.0 MB  $2.00 a month');
});

it('C8 A11 tiers explain shows the decisions of storage and of each agent', async () => {
  const { text } = await run(tiers, 'tiers', 'explain', 'reference-en');
  expect(text.split('\n')).toEqual([
    'abababababab  full (stable)  no need; last used, moved or fetched 2026-11-01T00:00:00.000Z; files fetched 3 times in 30 days',
    '  cold  2 files, 1.5 GB, 40 of at least 90 days, $0.0054 a month at $0.0036 a GB',
    '    moves to archive (cheaper): fees $0.040, of them $0.010 for the minimum stay; saves $0.0040 a month; not below archive; idle 200 days',
    '    over 200 days with 1 read: hot $0.20, cool $0.10, cold $0.050, archive $0.040',
    '  one loaded: pinned',
    '    score 0.12: 0.6 requests a second, each 0.2 s faster, 1.0 GB; 2 leases, not below gpu',
    '  two ssd',
    'US East',
  ]);
});

it('A11 tiers explain shows agents with a revision that is not registered', async () => {
  const { text } = await run(tiers, 'tiers', 'explain', 'mounted');
  expect(text.split('\n')).toEqual(['abababababab  not registered', '  one ram', 'US East']);
});
