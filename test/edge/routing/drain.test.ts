import { env } from 'cloudflare:workers';
import { afterEach, describe, expect, it } from 'vitest';
import { modelsOnlyAt } from '../../../edge/routing/drain-orders.ts';
import { drainedPool } from '../../../edge/routing/drain-pool.ts';
import type { AuditEvent } from '../../../shared/audit/event.ts';
import { FakeAgent } from '../../fake/agent.ts';
import { ask, passTime, readRefusal } from '../../fake/network.ts';
import { makeToken } from '../authority.ts';
import { agent as fleetAgent, model as fleetModel, snapshot } from './fleet.ts';

const joined: FakeAgent[] = [];
afterEach(() => {
  for (const agent of joined.splice(0)) agent.leave();
});

const unique = () => crypto.randomUUID().slice(0, 8);

/** An agent of a pool of its own, in the zone `eu`. */
async function join(model: string, pool = `pool-${unique()}`): Promise<FakeAgent> {
  const agent = await FakeAgent.make({ agent: `${pool}-0`, pool });
  joined.push(agent);
  await agent.join([model]);
  return agent;
}

const drain = async (pool: string, body: unknown = {}, scope = 'operate') => {
  passTime(2_000);
  const authorization = `Bearer ${await makeToken({ scope, sub: 'an operator' })}`;
  return ask(`/v1/pools/${pool}/drain`, { method: 'POST', headers: { authorization }, body: JSON.stringify(body) });
};

const isOrder = ({ type }: Record<string, unknown>) => type === 'drain';
const loadOf = async ({ name }: FakeAgent) =>
  (await env.ROSTER.getByName('eu').snapshot()).entries.find(({ description }) => description.agent === name)?.load;

describe('C6 the order to drain a pool', () => {
  it('reaches its agents and is recorded', async () => {
    const model = `model-${unique()}`;
    const [one, other] = [await join(model), await join(model)];
    const answer = await drain(one.pool);
    expect(drainedPool.strict().parse(await answer.json())).toEqual({
      object: 'pool.drain',
      pool: one.pool,
      agents: [one.name],
    });
    await one.waitFor(isOrder);
    expect(await loadOf(one)).toMatchObject({ draining: true });
    expect(await loadOf(other)).toMatchObject({ draining: false });
    await other.settled();
    expect(other.messages.filter(isOrder)).toEqual([]);
    const { rows } = await env.ROSTER.getByName('eu').outbox(0, 10_000);
    const [act] = (rows as { event: AuditEvent }[])
      .map(({ event }) => event)
      .filter((event) => event.type === 'operator.act' && event.pool === one.pool);
    expect(act).toMatchObject({ action: 'pool.drain', zone: 'eu', count: 1, subject: expect.stringMatching(/^c1:/) });
  });

  it('is repeated until a report confirms it', async () => {
    const model = `model-${unique()}`;
    const [one] = [await join(model), await join(model)];
    await drain(one.pool);
    await one.send(one.report());
    await expect.poll(() => one.messages.filter(isOrder).length).toBe(2);
    expect(await loadOf(one)).toMatchObject({ draining: true });
    await one.send(one.report({ draining: true }));
    await one.settled();
    expect(one.messages.filter(isOrder)).toHaveLength(2);
  });

  it('ends with the process of the agent', async () => {
    const model = `model-${unique()}`;
    const [one] = [await join(model), await join(model)];
    await drain(one.pool);
    one.leave();
    passTime(2_000);
    const restarted = await join(model, one.pool);
    await restarted.settled();
    expect(await loadOf(restarted)).toMatchObject({ draining: false });
    expect(restarted.messages.filter(isOrder)).toEqual([]);
  });

  it('is refused for the last pool of a model, unless forced', async () => {
    const model = `model-${unique()}`;
    const agent = await join(model);
    expect(await readRefusal(await drain(agent.pool))).toEqual({
      status: 409,
      code: 'pool_needed',
      message: `No other pool of the zone "eu" serves ${model}. Send "force": true to drain "${agent.pool}" all the same.`,
    });
    expect(await loadOf(agent)).toMatchObject({ draining: false });
    expect((await drain(agent.pool, { force: true })).status).toBe(200);
    await agent.waitFor(isOrder);
    // A repeated order finds nothing more to lose.
    expect((await drain(agent.pool)).status).toBe(200);
  });

  it('is refused for an unknown pool, a wrong body or scope', async () => {
    expect(await readRefusal(await drain('pool-nowhere'))).toEqual({
      status: 404,
      code: 'pool_unknown',
      message: 'No agent of a pool "pool-nowhere" is connected.',
    });
    expect(await readRefusal(await drain('p', { force: 'yes' }))).toMatchObject({ status: 400, code: 'field_invalid' });
    expect(await readRefusal(await drain('p', {}, 'transcribe'))).toMatchObject({ status: 403, code: 'scope_missing' });
  });
});

describe('C6 models of one pool only', () => {
  const models = (...names: string[]) => ({ models: names.map((name) => fleetModel({ name })) });

  it('have no other agent that takes work', () => {
    const entries = [
      fleetAgent('a', { pool: 'one', ...models('en', 'es') }),
      fleetAgent('b', { pool: 'one', ...models('zh') }),
      fleetAgent('c', { pool: 'two', ...models('en') }),
      fleetAgent('d', { pool: 'two', ...models('es') }, { draining: true }),
      fleetAgent('e', { pool: 'two', ...models('zh') }, {}, 0),
    ];
    expect(modelsOnlyAt('one', snapshot(entries))).toEqual(['es', 'zh']);
    expect(modelsOnlyAt('two', snapshot(entries))).toEqual([]);
  });

  it('leave out revisions on trial', () => {
    const grey = fleetAgent('a', { pool: 'one', models: [fleetModel({ stage: 'grey' })] });
    expect(modelsOnlyAt('one', snapshot([grey]))).toEqual([]);
  });

  it('are served to stable sessions by no canary elsewhere', () => {
    const stable = fleetAgent('a', { pool: 'one', ...models('en') });
    const canary = fleetAgent('b', { pool: 'two', models: [fleetModel({ name: 'en', stage: 'canary' })] });
    expect(modelsOnlyAt('one', snapshot([stable, canary]))).toEqual(['en']);
    // Canary sessions fall back to the stable revision.
    expect(modelsOnlyAt('two', snapshot([stable, canary]))).toEqual([]);
    expect(modelsOnlyAt('two', snapshot([canary]))).toEqual(['en']);
  });

  it('are decided by the released revision rather than the stage', () => {
    const revision = `sha256:${'1'.repeat(64)}`;
    const stable = fleetAgent('a', { pool: 'one', models: [fleetModel({ name: 'en', revision })] });
    const former = fleetAgent('b', { pool: 'two', ...models('en') });
    const at = (before?: string) => {
      const release = { v: 1 as const, generation: 1, models: { en: { stable: revision, ...(before && { before }) } } };
      return modelsOnlyAt('one', { ...snapshot([stable, former]), release });
    };
    expect(at(revision)).toEqual(['en']);
    expect(at(`sha256:${'0'.repeat(64)}`)).toEqual([]);
  });
});
