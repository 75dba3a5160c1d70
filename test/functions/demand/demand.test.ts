import { HttpRequest } from '@azure/functions';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DEMAND_MODELS_MAX, DEMAND_MS, noteDemand } from '../../../functions/demand/demand.ts';
import { onDemand } from '../../../functions/demand/on-demand.ts';
import type { Messages, QueueOf } from '../../../functions/store/jobs.ts';
import type { Delivery } from '../../../shared/audit/delivery.ts';
import { auditEvent } from '../../../shared/audit/event.ts';
import { MemoryRows } from '../../fake/rows.ts';
import { type Callers, makeCallers } from '../callers.ts';

let callers: Callers;
beforeAll(async () => {
  callers = await makeCallers();
});

let now: number;
let rows: MemoryRows;
let queues: Record<string, Messages>;
beforeEach(() => {
  now = Date.now();
  rows = new MemoryRows();
  queues = {};
});
const context = () => ({
  rows,
  settings: callers.settings,
  now: () => now,
  jobs: {
    messages: async ({ zone, model, light }: QueueOf) =>
      queues[`${zone} ${model}${light ? ' light' : ''}`] ?? { waiting: 0, taken: 0 },
  },
});

const end = (model: string, more: object = {}) =>
  auditEvent.parse({
    ...{ v: 1, id: crypto.randomUUID(), producer: 'edge', tenant: 'acme', request: 'r', action: 'transcribe' },
    ...{ type: 'inference.complete', status: 503, reason: 'no_pool', at: now, model },
    ...more,
  });
const deliver = (events: unknown[], zone = 'eu') => {
  const delivery: Delivery = {
    ...{ v: 1, producer: `gate/acme/${zone}`, epoch: crypto.randomUUID(), oldest: 1 },
    rows: [{ to: events.length, t: now, events }],
  };
  return noteDemand(context(), zone, delivery);
};

async function demandOf(models: readonly string[], { zone = 'eu', scope = 'pool' } = {}) {
  const query = `models=${models.join(',')}`;
  const url = `https://functions.test/api/agents/demand?${query}`;
  const headers = { authorization: `Bearer ${await callers.poolToken(zone, scope)}` };
  const { status, jsonBody } = await onDemand(context(), new HttpRequest({ method: 'GET', url, headers }));
  return { status, body: jsonBody };
}

describe('R15 demand for a pool without pods', () => {
  it('counts models whose requests found no agent, by zone, for five minutes', async () => {
    await deliver([end('asr'), end('asr'), end('voice'), end('other')]);
    expect(await demandOf(['asr', 'voice', 'quiet'])).toEqual({
      status: 200,
      body: { zone: 'eu', requests: 2, jobs: 0, demand: 2 },
    });
    expect((await demandOf(['asr'], { zone: 'us' })).body).toMatchObject({ requests: 0 });
    now += DEMAND_MS;
    expect((await demandOf(['asr'])).body).toMatchObject({ requests: 0 });
  });

  it('counts no request that was served, refused otherwise, or reported late', async () => {
    const late = end('asr', { at: now - DEMAND_MS });
    await deliver([end('asr', { reason: undefined }), end('asr', { reason: 'pool_busy' }), late, 'unreadable']);
    expect((await demandOf(['asr'])).body).toMatchObject({ requests: 0 });
  });

  it('keeps the newest of a bounded number of models', async () => {
    await deliver([end('asr')]);
    now += 1_000;
    await deliver(Array.from({ length: DEMAND_MODELS_MAX }, (_, index) => end(`x${index}`)));
    expect((await demandOf(['asr', 'x0', 'x63'])).body).toMatchObject({ requests: 2 });
  });

  it('counts jobs that wait or run, those for light pools too', async () => {
    queues = { 'eu asr': { waiting: 3, taken: 1 }, 'eu asr light': { waiting: 2, taken: 0 } };
    await deliver([end('asr')]);
    expect((await demandOf(['asr'])).body).toEqual({ zone: 'eu', requests: 1, jobs: 6, demand: 7 });
  });

  it('refuses other tokens and calls that name no model', async () => {
    expect((await demandOf(['asr'], { scope: 'other' })).status).toBe(403);
    expect((await demandOf([])).status).toBe(400);
  });
});
