import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { Meter } from '../../../edge/telemetry/meter.ts';
import { edgeMetrics, renderMetrics, seriesOf } from '../../../edge/telemetry/metric-table.ts';
import { StoredMetrics } from '../../../edge/telemetry/stored-metrics.ts';
import { ask, startAgent, upload } from '../../fake/network.ts';
import { makeToken } from '../authority.ts';

/** Reports leave once a second, and later on a busy machine. */
const patience = { timeout: 8_000, interval: 50 };
const quota = (minute: number, day: number) => ({
  requests: { limit: 100, remaining: minute },
  audioSeconds: { limit: 100, remaining: day },
});
const operator = async () => ({ headers: { authorization: `Bearer ${await makeToken({ scope: 'operate' })}` } });
const page = async () => (await ask('/metrics', await operator())).text();
const value = (text: string, series: string) =>
  text
    .split('\n')
    .find((line) => line.startsWith(`${series} `))
    ?.slice(series.length + 1);

describe('U10 R14 metrics of the edge', () => {
  it('R14 show a served request by model and pool, and its seconds', async () => {
    const model = `model-${crypto.randomUUID().slice(0, 8)}`;
    const { pool } = await startAgent(model);
    const answer = await upload({ fields: [['model', model]] });
    expect(answer.status).toBe(200);
    await answer.text();
    const labels = { zone: 'eu', action: 'transcribe', model, pool };
    const requests = seriesOf('auricle_edge_requests_total', { ...labels, outcome: 'ok' });
    await expect.poll(async () => value(await page(), requests), patience).toBe('1');
    const text = await page();
    expect(Number(value(text, seriesOf('auricle_edge_audio_seconds_total', labels)))).toBeCloseTo(8.47);
    expect(value(text, seriesOf('auricle_edge_request_seconds_count', { zone: 'eu', model, pool }))).toBe('1');
    expect(text).toMatch(/^auricle_edge_allowance_left_ratio\{zone="eu",tenant="acme",of="minute"\} 0\.\d+$/m);
  });

  it('R14 count refusals by reason, and no name that a caller invents', async () => {
    const invented = `invented-${crypto.randomUUID()}`;
    expect((await upload({ fields: [['model', invented]] })).status).toBe(404);
    expect((await upload({ token: null })).status).toBe(401);
    const refused = (action: string, outcome: string) =>
      seriesOf('auricle_edge_requests_total', { zone: 'eu', action, model: '', pool: '', outcome });
    await expect.poll(async () => value(await page(), refused('transcribe', 'model_unknown')), patience).toBeDefined();
    await expect.poll(async () => value(await page(), refused('transcribe', 'token_missing')), patience).toBeDefined();
    expect(await page()).not.toContain(invented);
  });

  it('R14 need the scope operate', async () => {
    const token = await makeToken({ scope: 'transcribe' });
    expect((await ask('/metrics')).status).toBe(401);
    expect((await ask('/metrics', { headers: { authorization: `Bearer ${token}` } })).status).toBe(403);
  });

  it('R14 are one block for each metric, with cumulative buckets', () => {
    const meter = new Meter();
    meter.count({ zone: 'eu', action: 'transcribe', outcome: 'ok', model: 'm', pool: 'p', milliseconds: 300 });
    meter.count({ zone: 'eu', action: 'transcribe', outcome: 'ok', model: 'm', pool: 'p', milliseconds: 4_000 });
    const stored = new StoredMetrics('eu');
    for (const [, report] of meter.take()) stored.add(report, 0);
    const text = renderMetrics(new Map(stored.read(0)));
    const bucket = (le: string) =>
      value(text, seriesOf('auricle_edge_request_seconds_bucket', { zone: 'eu', model: 'm', pool: 'p', le }));
    expect(['0.25', '0.5', '5', '+Inf'].map(bucket)).toEqual(['0', '1', '2', '2']);
    expect(text.match(/^# TYPE /gm)).toHaveLength(Object.keys(edgeMetrics).length);
    expect(meter.take()).toEqual([]);
  });

  it('R14 stay bounded under names without end', () => {
    const stored = new StoredMetrics('eu');
    for (let turn = 0; turn < 21; turn += 1) {
      const meter = new Meter();
      for (let one = 0; one < 1_100; one += 1) {
        const tenant = turn === 0 ? { tenant: `t-${one}`, quota: quota(one === 7 ? 1 : 90, 90) } : {};
        meter.count({ zone: 'eu', ...tenant, action: `a-${turn}-${one}`, outcome: 'ok' });
      }
      for (const [, report] of meter.take()) stored.add(report, 0);
    }
    const series = new Map(stored.read(0));
    expect(series.size).toBeLessThan(20_000 + 2 * 500 + 2);
    expect(series.get('auricle_edge_series_dropped_total{zone="eu"}')).toBeGreaterThan(1_000);
    // The tenants nearest to their limit stay visible.
    const nearest = seriesOf('auricle_edge_allowance_left_ratio', { zone: 'eu', tenant: 't-7', of: 'minute' });
    expect(series.get(nearest)).toBe(0.01);
    expect(new Map(stored.read(3_600_001)).has(nearest)).toBe(false);
  });

  it('R14 escape quotes and line breaks in labels', () =>
    expect(seriesOf('a', { b: 'x"y\\z\n' })).toBe('a{b="x\\"y\\\\z\\n"}'));
});

it('R14 a Roster without reports has an empty page', async () => {
  expect(await env.ROSTER.getByName(`zone-${crypto.randomUUID()}`).metrics()).toEqual([]);
});
