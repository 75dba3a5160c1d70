// Live traffic at the functions: what agents tell is counted once, and a revision that it speaks against goes back by itself.
import { HttpRequest } from '@azure/functions';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { evaluateLive } from '../../../functions/registry/evaluate-live.ts';
import { getLiveEvidence } from '../../../functions/registry/get-live.ts';
import type { ModelContext } from '../../../functions/registry/model-context.ts';
import { moveAlias } from '../../../functions/registry/move-alias.ts';
import { moveRevision } from '../../../functions/registry/move-revision.ts';
import { onLive } from '../../../functions/registry/on-live.ts';
import { registerRevision } from '../../../functions/registry/register-revision.ts';
import { ownSigner } from '../../../functions/registry/sign-as-functions.ts';
import {
  type AgentRow,
  afterReport,
  LIVE_GONE_S,
  newsOf,
  storeReport,
  type TakenRow,
} from '../../../functions/registry/stored-live.ts';
import { readModel } from '../../../functions/registry/stored-model.ts';
import { LIVE_SETTLE_S } from '../../../functions/registry/trial.ts';
import type { EventDraft } from '../../../shared/audit/event.ts';
import type { Evidence } from '../../../shared/registry/evidence.ts';
import {
  addCounts,
  countStream,
  LIVE_REPORT_STREAMS_MAX,
  type LiveCounts,
  type LiveStream,
  liveCounts,
  noCounts,
} from '../../../shared/registry/live-counts.ts';
import { type LiveReport, liveProofOf } from '../../../shared/registry/live-report.ts';
import { seeded } from '../../../shared/registry/seeded.ts';
import type { Standing } from '../../../shared/registry/stage.ts';
import { ok } from '../../../shared/result.ts';
import { ModelBlobs } from '../../fake/model-blobs.ts';
import { RowsWithFiles } from '../../fake/rows-with-files.ts';
import { firstSeed, seeds } from '../../seeds.ts';
import {
  forCanary,
  forGrey,
  makeP256,
  makeRevision,
  type Person,
  rates,
  runAt,
  signerOf,
  signMove,
} from '../../shared/registry/people.ts';
import { type Callers, makeCallers } from '../callers.ts';

const MODEL = 'reference-en';
let callers: Callers;
let people: Person[];
let own: Person;
let [first, second] = [''] as unknown as [string, string];
let bundles: Awaited<ReturnType<typeof makeRevision>>[];

beforeAll(async () => {
  callers = await makeCallers();
  people = await Promise.all(['ann', 'bob', 'cleo'].map(async (name) => ({ name, key: await makeP256() })));
  own = { name: 'own', key: await makeP256() };
  bundles = await Promise.all(['one', 'two'].map((content) => makeRevision(content, people[0] as Person)));
  [first, second] = bundles.map(({ revision }) => revision) as [string, string];
});

let now: number;
let told: EventDraft[];
let lines: string[];
let desk: ModelContext;
let seq: number;
/** Start time of the agents. */
let began: number;

beforeEach(() => {
  now = Date.now();
  began = now;
  told = [];
  lines = [];
  seq = 0;
  desk = {
    rows: new RowsWithFiles(),
    blobs: new ModelBlobs(),
    signers: [...people.map(signerOf), ownSigner(own.key)],
    ownKey: own.key,
    zone: 'eu',
    audit: {
      report: async (_zone, draft, id) => {
        told.push(draft);
        return ok({ id: id ?? '', producer: '', epoch: '', pseq: told.length });
      },
    },
    edge: undefined,
    settings: callers.settings,
    log: ({ what, detail }) => void lines.push(`${what}: ${detail}`),
    now: () => now,
  };
});

const many = (streams: number, one: (at: number) => LiveStream): LiveCounts =>
  Array.from({ length: streams }, (_, at) => one(at)).reduce(countStream, noCounts);
const usual = (at: number): LiveStream => ({
  outcome: 'served',
  // One in 25 is slow.
  milliseconds: at % 25 === 0 ? 300 : 40 + (at % 50),
});
const slow = (at: number): LiveStream => ({ outcome: 'served', milliseconds: 400 + (at % 50) });
const copy = (errors: number) => (): LiveStream => ({
  outcome: 'served',
  milliseconds: 50,
  compared: { words: 10, errors },
});

/** All that an agent has counted, told once more. */
async function tell(agent: string, models: LiveReport['models'], zone = 'eu', boot = `boot-of-${agent}-0000`) {
  seq += 1;
  const report = JSON.stringify({ v: 1, boot, began, seq, models } satisfies LiveReport);
  expect(await send({ report, proof: await callers.proofOf(liveProofOf(report), agent, agent, now) }, zone)).toBe(200);
}

async function send(body: { report: string; proof: string }, zone = 'eu') {
  const headers = { authorization: `Bearer ${await callers.poolToken(zone)}` };
  const url = 'http://functions/api/agents/live';
  const request = new HttpRequest({ url, method: 'POST', headers, body: { string: JSON.stringify(body) } });
  return (await onLive(desk)(request)).status;
}

const served = (revision: string, counts: LiveCounts) => ({ model: MODEL, revision, served: counts });
const mirrored = (revision: string, counts: LiveCounts) => ({ model: MODEL, revision, mirrored: counts });

async function move(revision: string, from: Standing, to: Standing, evidence: Evidence[] = []) {
  const asked = { revision, from, to, at: now, evidence };
  const moved = await moveRevision(desk, MODEL, await signMove(asked, ...people.slice(1)));
  return moved.ok ? moved.value.missing : moved.refusal.params;
}

const register = (at: number) =>
  registerRevision(desk, MODEL, { bundle: bundles[at]?.bundle as never, description: {} });
const SHARES = [0.01, 0.05, 0.1, 0.25, 0.5] as const;
const canary = (at: number): Standing => ({ stage: 'canary', share: SHARES[at] as (typeof SHARES)[number] });

/** Registers two revisions: the first is full, the second grey. */
async function begin() {
  await register(0);
  await move(first, { stage: 'develop-verify' }, { stage: 'grey' }, forGrey());
  await move(first, { stage: 'grey' }, canary(0), forCanary());
  for (const at of [0, 1, 2, 3]) await move(first, canary(at), canary(at + 1), [rates(runAt(at, 300, 0, 0))]);
  expect(await move(first, canary(4), { stage: 'full' }, [rates(runAt(4, 300, 5, 60))])).toBe(0);
  await moveAlias(desk, MODEL, { alias: 'stable', revision: first });
  await register(1);
  await move(second, { stage: 'develop-verify' }, { stage: 'grey' }, forGrey());
  await judge();
  expect(lines).toEqual([]);
}

/** The clock goes on until what was moved is known everywhere, and what was told is counted. */
async function judge(seconds: number = LIVE_SETTLE_S) {
  now += seconds * 1_000;
  await evaluateLive(desk);
}

const standingOf = async (revision: string) =>
  (await readModel(desk, MODEL)).registry.revisions[revision]?.standing.stage;
const seen = async (revision: string) => {
  const found = await getLiveEvidence(desk, MODEL, revision);
  return found.ok ? found.value : found;
};

describe('C7: reports of live traffic', () => {
  it('repeated, reordered, lost or from another life: each stream counts at most once', () => {
    for (let seed = firstSeed; seed < firstSeed + Math.min(seeds, 2_000); seed += 1) {
      const random = seeded(seed);
      let row: AgentRow | undefined;
      let taken: TakenRow | undefined;
      let sum = noCounts;
      let all = noCounts;
      const pending: LiveReport[] = [];
      let life = noCounts;
      let boot = 0;
      for (let step = 1; step < 60; step += 1) {
        if (random() < 0.05) {
          boot += 1;
          life = noCounts;
        }
        const one = countStream(noCounts, usual(step));
        [life, all] = [addCounts(life, one), addCounts(all, one)];
        pending.push({
          v: 1,
          boot: `boot-${boot}`.padEnd(16, '0'),
          began: boot,
          seq: step,
          models: [served(first, life)],
        });
        if (random() < 0.6) {
          const report = pending[Math.floor(random() * pending.length)] as LiveReport;
          row = afterReport(row, { zone: 'eu', model: MODEL, report, now: step }) ?? row;
        }
        if (row && random() < 0.3) {
          sum = addCounts(sum, newsOf(row, taken)[first]?.served ?? noCounts);
          taken = { boot: row.boot, now: row.now };
        }
      }
      row = afterReport(row, { zone: 'eu', model: MODEL, report: pending.at(-1) as LiveReport, now: 60 }) ?? row;
      sum = addCounts(sum, row ? (newsOf(row, taken)[first]?.served ?? noCounts) : noCounts);
      expect(sum.streams, `seed ${seed}`).toBeLessThanOrEqual(all.streams);
      expect(sum.streams, `seed ${seed}`).toBeGreaterThanOrEqual(boot === 0 ? all.streams : life.streams);
    }
  });

  it('is of an attested agent, and of these very counts', async () => {
    await begin();
    await tell('agent-1', [served(first, many(3, usual))]);
    const report = JSON.stringify({ v: 1, boot: 'boot-of-another-00', began: 1, seq: 9, models: [] });
    const proof = await callers.proofOf(liveProofOf(report));
    expect(await send({ report: report.replace(':9', ':8'), proof })).toBe(401);
    expect(await send({ report, proof: await callers.proofOf(liveProofOf(report), 'agent-1', 'agent-2') })).toBe(401);
    expect(await send({ report: 'nothing', proof: await callers.proofOf(liveProofOf('nothing')) })).toBe(400);
    const models = [served(first, { ...noCounts, streams: LIVE_REPORT_STREAMS_MAX + 1 })];
    const much = JSON.stringify({ v: 1, boot: 'boot-of-agent-1-0000', began, seq: 99, models });
    expect(await send({ report: much, proof: await callers.proofOf(liveProofOf(much)) })).toBe(400);
    await tell('agent-1', [{ ...served(first, many(3, usual)), model: 'never-registered' }]);
    expect(await desk.rows.scan('never-registered', '', '~', 9)).toEqual([]);
  });
});

describe('C7: judged by the clock', () => {
  it('a differing grey revision is rolled back; an equal one may go on', async () => {
    await begin();
    await tell('agent-2', [mirrored(second, many(250, copy(0)))]);
    await judge();
    expect(await seen(second)).toMatchObject({
      verdict: 'PASS',
      verdicts: { stability: 'PASS', disagreement: 'PASS' },
    });
    await tell('agent-2', [mirrored(second, addCounts(many(250, copy(0)), many(200, copy(5))))]);
    await judge();
    expect(await standingOf(second)).toBe('develop-verify');
    expect(lines).toEqual([]);
    expect(told.at(-1)).toMatchObject({
      ...{ type: 'model.stage', model: MODEL, revision: second, from: 'grey', to: 'develop-verify' },
      reason: expect.stringContaining('functions'),
    });
    // Evidence of an earlier stage no longer counts.
    expect(await seen(second)).toMatchObject({ evidence: [] });
    expect(await move(second, { stage: 'develop-verify' }, { stage: 'grey' }, forGrey())).toBe(0);
    await judge();
    expect(await standingOf(second)).toBe('grey');
  });

  it('passes from grey to full on live traffic alone; too little opens nothing', async () => {
    await begin();
    expect(await move(second, { stage: 'grey' }, canary(0))).toMatchObject({ rule: expect.any(String) });
    await tell('agent-2', [mirrored(second, many(250, copy(0)))]);
    await judge();
    expect(await move(second, { stage: 'grey' }, canary(0))).toBe(0);
    let [stable, tried] = [many(1_200, usual), noCounts];
    const report = async () => {
      await tell('agent-1', [served(first, stable)]);
      await tell('agent-2', [served(second, tried)]);
      await judge();
    };
    await report();
    // The verdict names the slow figure; while the share settles nothing else counts.
    await report();
    for (const at of [0, 1, 2, 3, 4]) {
      const to: Standing = at < 4 ? canary(at + 1) : { stage: 'full' };
      expect(await move(second, canary(at), to), `at ${at}`).toMatchObject({ rule: expect.any(String) });
      const streams = at < 4 ? 300 : 1_200;
      tried = addCounts(tried, many(streams, usual));
      stable = addCounts(stable, many(Math.round((streams * (1 - (SHARES[at] ?? 0))) / (SHARES[at] ?? 1)), usual));
      await report();
      expect(await move(second, canary(at), to), `at ${at}`).toBe(0);
      await judge();
    }
    expect(await standingOf(second)).toBe('full');
  });

  it('C7 made-up rates open no gate while agents count, right after a step included', async () => {
    await begin();
    await move(second, { stage: 'grey' }, canary(0), forCanary());
    const stable = many(1_200, usual);
    await tell('agent-1', [served(first, stable)]);
    await judge();
    await judge();
    await tell('agent-1', [served(first, addCounts(stable, many(99 * 310, usual)))]);
    await tell('agent-2', [served(second, many(310, usual))]);
    await judge();
    expect(await move(second, canary(0), canary(1))).toBe(0);
    now += 1;
    const madeUp = [rates(runAt(1, 300, 0, 0))];
    expect(await move(second, canary(1), canary(2), madeUp)).toMatchObject({ rule: expect.stringContaining('300') });
    await judge();
    expect(await move(second, canary(1), canary(2), madeUp)).toMatchObject({ rule: expect.stringContaining('300') });
  });

  it('a slow canary and its alias are rolled back; the stable revision stays', async () => {
    await begin();
    await move(second, { stage: 'grey' }, canary(0), forCanary());
    await moveAlias(desk, MODEL, { alias: 'next', revision: first });
    await moveAlias(desk, MODEL, { alias: 'next', from: first, revision: second });
    const [stable, tried] = [many(1_200, usual), many(100, slow)];
    await tell('agent-1', [served(first, stable)]);
    await judge();
    await tell('agent-1', [served(first, stable)]);
    await tell('agent-2', [served(second, tried)]);
    await judge();
    await judge();
    await tell('agent-2', [served(second, addCounts(tried, tried))]);
    await tell('agent-1', [served(first, addCounts(stable, many(900, usual)))]);
    await judge();
    expect(await standingOf(second)).toBe('develop-verify');
    const { aliases } = (await readModel(desk, MODEL)).registry;
    expect([aliases.next?.revision, aliases.stable?.revision]).toEqual([first, first]);
    expect(lines).toEqual([]);
  });

  it('A15: a canary slower than promised is rolled back; a smaller one is wanted', async () => {
    await begin();
    const { revision, bundle } = await makeRevision('three', people[0] as Person, 'sha256', { latencyMs: 200 });
    await registerRevision(desk, MODEL, { bundle, description: {} });
    await move(revision, { stage: 'develop-verify' }, { stage: 'grey' }, forGrey());
    expect(await move(revision, { stage: 'grey' }, canary(0), forCanary())).toBe(0);
    // The full revision is no faster: only the target is missed.
    await tell('agent-1', [served(first, many(1_200, slow))]);
    await judge();
    await judge();
    let tried = noCounts;
    const standings: (string | undefined)[] = [];
    for (let window = 0; window < 5; window += 1) {
      tried = addCounts(tried, many(60, slow));
      await tell('agent-2', [served(revision, tried)]);
      await judge();
      standings.push(await standingOf(revision));
    }
    expect([standings[0], standings.at(-1)]).toEqual(['canary', 'develop-verify']);
    expect((await readModel(desk, MODEL)).registry.revisions[revision]?.rollout).toMatchObject({
      ...{ state: 'making', method: 'dynamic' },
      reason: expect.stringMatching(/^latencyMs 4\d\d(\.\d)?, promised 200/),
    });
    expect(lines).toEqual([]);
  });

  it('only zones with the canary count against it; others give windows', async () => {
    await begin();
    await move(second, { stage: 'grey' }, canary(0), forCanary());
    await tell('agent-1', [served(first, many(1_200, usual))]);
    await tell('agent-9', [served(first, many(1_200, slow))], 'us');
    await tell('agent-2', [served(second, noCounts)]);
    await judge();
    await judge();
    await tell('agent-9', [served(first, many(9_000, slow))], 'us');
    await tell('agent-2', [served(second, many(400, usual))]);
    await judge();
    const { evidence, windows } = (await seen(second)) as { evidence: Evidence[]; windows: { streams: number }[] };
    const run = evidence.flatMap((one) => (one.kind === 'rates' ? [one.run] : []))[0];
    expect(run?.bad.reduce((sum, { stable }) => sum + stable, 0) ?? 0).toBe(0);
    expect(windows.reduce((sum, { streams }) => sum + streams, 0)).toBeGreaterThan(0);
    expect((await seen(first)) as object).toMatchObject({
      verdicts: {},
      windows: [expect.objectContaining({ failed: 0 })],
    });
  });

  it('agents that went for good are forgotten, and nothing of what they counted', async () => {
    await begin();
    await tell('agent-2', [mirrored(second, many(150, copy(0)))]);
    await judge();
    const row = () => desk.rows.scan(MODEL, 'l!', 'l!~', 9);
    await judge(LIVE_GONE_S - LIVE_SETTLE_S);
    expect(await row()).toHaveLength(1);
    await judge(LIVE_SETTLE_S + 1);
    expect([await row(), await desk.rows.scan(MODEL, 't!', 't!~', 9)]).toEqual([[], []]);
    // One that comes back after all has been counted; of others all is new.
    const boot = 'boot-of-agent-2-0000';
    const later = (streams: number, since: number): LiveReport => ({
      ...{ v: 1, boot, began: since, seq: 99 },
      models: [mirrored(second, many(streams, copy(0)))],
    });
    await storeReport(desk, 'agent-2', 'eu', later(155, began));
    await judge();
    await storeReport(desk, 'agent-3', 'eu', later(60, now));
    await judge();
    expect(await seen(second)).toMatchObject({ verdict: 'PASS', evidence: [{ streams: 210 }, { streams: 210 }] });
  });

  it('sums stay safe integers; an unreadable row stops neither judging nor moving', async () => {
    const most = { ...noCounts, streams: Number.MAX_SAFE_INTEGER, latency: [Number.MAX_SAFE_INTEGER] };
    expect(liveCounts.safeParse(addCounts(most, most)).success).toBe(true);
    await begin();
    const bent = { traffic: { [first]: { streams: Number.MAX_VALUE } }, trials: {} };
    await desk.rows.commit(MODEL, [
      { type: 'put', key: 'live', value: bent },
      { type: 'put', key: 'l!agent-0', value: { boot: 1 } },
    ]);
    expect(await move(second, { stage: 'grey' }, { stage: 'develop-verify' })).toBe(0);
    now += 1;
    expect(await move(second, { stage: 'develop-verify' }, { stage: 'grey' }, forGrey())).toBe(0);
    await tell('agent-2', [mirrored(second, many(20, copy(9)))]);
    await judge();
    await judge(1);
    expect(new Set(lines)).toEqual(
      new Set(['live unreadable: reference-en live', 'live unreadable: reference-en l!agent-0']),
    );
    await tell('agent-2', [mirrored(second, addCounts(many(20, copy(9)), many(20, copy(9))))]);
    await judge();
    expect(await standingOf(second)).toBe('develop-verify');
    // Its next report replaces the unreadable one.
    await tell('agent-0', [served(first, noCounts)]);
    lines = [];
    await judge();
    expect(lines).toEqual([]);
  });

  it('without a key of their own the functions move nothing, and say so', async () => {
    await begin();
    desk = { ...desk, ownKey: undefined };
    await tell('agent-2', [mirrored(second, many(20, copy(9)))]);
    await judge();
    expect(await standingOf(second)).toBe('grey');
    expect(lines).toEqual(['not withdrawn: no SERVICE_KEY']);
  });
});
