import { beforeEach, describe, expect, it } from 'vitest';
import { explain, type RouteDecision, routeDecision } from '../../../edge/routing/decision.ts';
import {
  DECISION_MS,
  DECISIONS_PER_S,
  DECISIONS_STORED_MAX,
  explainWithin,
  StoredDecisions,
} from '../../../edge/routing/decisions.ts';
import { EJECT_FAILURES, finished, type RouteMemory } from '../../../edge/routing/memory.ts';
import { textOf } from '../../../infra/cli/pools/route.ts';
import { ask, passTime, readRefusal, startAgent, upload } from '../../fake/network.ts';
import { eventually } from '../../fake/stream-agent.ts';
import { makeToken } from '../authority.ts';
import { agent, model, now, request, snapshot } from './fleet.ts';

const none: RouteMemory = new Map();
const failing = Array.from({ length: EJECT_FAILURES }).reduce<RouteMemory>(
  (memory) => finished(memory, 'failing', { outcome: 'failure', ms: 5, now }),
  none,
);

describe('C6 an explanation', () => {
  const entries = [
    agent('near', { location: { latitude: 52, longitude: 5 } }),
    agent('hot', { location: { latitude: 39, longitude: -77 } }, { degraded: 2 }),
    agent('failing'),
    agent('draining', {}, { draining: true }),
    agent('other', { models: [model({ name: 'voice-en' })] }),
    agent('canary', { models: [model({ stage: 'canary', revision: `sha256:${'1'.repeat(64)}` })] }),
  ];
  const far = agent('far', { zone: 'us' });
  const made = explain(request({ place: { latitude: 52, longitude: 5 } }), {
    snapshots: [snapshot(entries), snapshot([far], 'us')],
    memory: failing,
    now,
  });

  it('lists the cost of each candidate by term', () => {
    expect(made.candidates.map((one) => [one.agent, one.cost])).toEqual([
      ['near', { service: 100, total: 100 }],
      ['hot', { service: 100, distance: 93, degraded: 400, total: 593 }],
    ]);
  });

  it('says why each other agent was no candidate', () => {
    expect(Object.fromEntries(made.excluded.map((one) => [one.agent, one.why]))).toEqual({
      failing: 'ejected after failures',
      draining: 'draining',
      other: expect.stringMatching(/^model_unknown/),
      canary: 'another revision than that of the cohort',
      far: expect.stringMatching(/^residency_mismatch/),
    });
  });

  it('is bounded in a large fleet', () => {
    const fleet = Array.from({ length: 500 }, (_, at) => agent(`agent-${at}`, at % 2 ? {} : { suites: [1] }));
    const { candidates, excluded, unlisted } = explain(request(), { snapshots: [snapshot(fleet)], memory: none, now });
    expect([candidates.length, excluded.length, unlisted]).toEqual([16, 16, 468]);
  });

  it('is made for a bounded number of requests in a second', () => {
    const at = now + 10_000;
    const count = (time: number) =>
      Array.from({ length: 100 }, () => explainWithin(time, () => made)).filter(Boolean).length;
    expect(count(at)).toBe(DECISIONS_PER_S);
    expect(count(at + 999)).toBe(0);
    expect(count(at + 1_000)).toBe(DECISIONS_PER_S);
  });

  it('reads as tables of candidates, other agents and attempts', () => {
    const attempts = [{ agent: 'near', pool: 'pool-near', zone: 'eu', why: 'nearer of 2', outcome: 'served' }];
    const text = textOf({ ...made, request: 'id', attempts, outcome: 'served' });
    expect(text).toMatch(/hot +pool-hot +eu +100 +93 +400 +593/);
    expect(text).toMatch(/draining +pool-draining +eu +draining/);
    expect(text).toMatch(/near +pool-near +eu +nearer of 2 +served/);
  });
});

describe('C6 stored decisions', () => {
  const decisionOf = (name: string): RouteDecision => ({
    ...explain(request(), { snapshots: [], memory: none, now }),
    ...{ request: name, attempts: [], outcome: 'no_pool' },
  });

  it('end after ten minutes, and the oldest give way', () => {
    const stored = new StoredDecisions();
    stored.add([decisionOf('first'), decisionOf('second')], now);
    expect(stored.get('first', now + DECISION_MS - 1)).toEqual(decisionOf('first'));
    expect(stored.get('first', now + DECISION_MS)).toBeUndefined();
    stored.add(
      Array.from({ length: DECISIONS_STORED_MAX - 1 }, (_, at) => decisionOf(`later-${at}`)),
      now,
    );
    expect(stored.get('first', now)).toBeUndefined();
    expect(stored.get('second', now)).toBeDefined();
  });
});

describe('C6 GET /v1/requests/{id}/route', () => {
  beforeEach(() => passTime(1_000));
  const read = async (id: string, scope = 'operate') =>
    ask(`/v1/requests/${id}/route`, { headers: { authorization: `Bearer ${await makeToken({ scope })}` } });

  it('returns the decision about a served request', async () => {
    const name = `model-${crypto.randomUUID().slice(0, 8)}`;
    const agentOf = await startAgent(name);
    const served = await upload({ fields: [['model', name]] });
    const id = served.headers.get('x-request-id') ?? '';
    await served.text();
    await eventually(async () => (await read(id)).status === 200);
    const decision = routeDecision.strict().parse(await (await read(id)).json());
    expect(decision).toMatchObject({ request: id, model: name, outcome: 'served' });
    expect(decision.candidates.map((one) => one.agent)).toEqual([agentOf.name]);
    expect(decision.attempts).toMatchObject([{ agent: agentOf.name, outcome: 'served' }]);
  });

  it.each(['nonsense', '01a20845-d4ae-714f-96f9-a5b2c86644c8'])('refuses the unknown request %s', async (id) => {
    expect(await readRefusal(await read(id))).toMatchObject({ status: 404, code: 'decision_unknown' });
  });

  it('needs the scope operate', async () => {
    expect((await read('01a20845-d4ae-714f-96f9-a5b2c86644c8', 'transcribe')).status).toBe(403);
  });
});
