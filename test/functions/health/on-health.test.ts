import { describe, expect, it } from 'vitest';
import { decideHealth } from '../../../functions/health/decide-health.ts';
import { type HealthStores, onHealth } from '../../../functions/health/on-health.ts';

const there = { ensure: async () => {} };
const gone = {
  ensure: async () => {
    throw new Error('connect ECONNREFUSED 10.0.0.7:443');
  },
};

const all = { blobs: there, jobs: there, rows: there, notices: there };

async function ask(stores: HealthStores) {
  const lines: string[] = [];
  let now = 0;
  const answer = await onHealth(
    stores,
    (line) => lines.push(line),
    () => (now += 5),
  );
  return { answer, lines };
}

describe('decideHealth', () => {
  it('is healthy when every store is reached', () => {
    const health = decideHealth([{ store: 'blobs', reached: true, tookMs: 3 }]);
    expect(health).toEqual({ status: 200, body: { status: 'ok', stores: { blobs: { reached: true, tookMs: 3 } } } });
  });

  it('is not healthy with one store missing, nor with none tried', () => {
    const trials = [
      { store: 'blobs', reached: true, tookMs: 3 },
      { store: 'jobs', reached: false, tookMs: 2_000 },
    ];
    expect(decideHealth(trials).status).toBe(503);
    expect(decideHealth([]).status).toBe(503);
  });
});

describe('GET /api/health', () => {
  it('answers 200 with what was reached', async () => {
    const { answer, lines } = await ask(all);
    expect(answer.status).toBe(200);
    expect(answer.jsonBody).toMatchObject({
      status: 'ok',
      stores: { blobs: { reached: true }, jobs: { reached: true } },
    });
    expect(lines).toEqual([]);
  });

  it.each([
    ['blobs', { ...all, blobs: gone }],
    ['jobs', { ...all, jobs: gone }],
    ['rows', { ...all, rows: gone }],
    ['notices', { ...all, notices: gone }],
  ])('answers 503 without %s, and tells the reason to us only', async (store, stores) => {
    const { answer, lines } = await ask(stores);
    expect(answer.status).toBe(503);
    expect(JSON.stringify(answer)).not.toContain('10.0.0.7');
    expect(lines).toEqual([`${store} cannot be reached: connect ECONNREFUSED 10.0.0.7:443`]);
  });
});
