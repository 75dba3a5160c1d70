import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import type { EngineCounts } from '../../../../infra/pool/agent/telemetry/engine-counters.ts';
import { grownBy, registerEngineCounters } from '../../../../infra/pool/agent/telemetry/engine-counters.ts';

const second = 1e9;

describe('R14: counters of the engine on the page of the agent', () => {
  it('grow by the difference, also after an engine restart', () => {
    expect([grownBy(0, 7), grownBy(7, 7), grownBy(7, 9), grownBy(9, 0), grownBy(9, 2)]).toEqual([7, 0, 2, 0, 2]);
  });

  /** The samples of a page, without what stands around them. */
  async function scrape(registry: Registry) {
    const lines = (await registry.metrics()).split('\n').filter((line) => line && !line.startsWith('#'));
    return Object.fromEntries(
      lines.map((line) => {
        const [, name, model, value] = /^auricle_agent_engine_(\w+)\{model="(\w+)"\} (\S+)$/.exec(line) ?? [];
        return [`${name} ${model}`, Number(value)];
      }),
    );
  }

  it('continue after a reload, and stay while the engine is silent', async () => {
    let counts: Record<string, EngineCounts> = {};
    const registry = new Registry();
    registerEngineCounters(registry, async () => new Map(Object.entries(counts)));
    expect(await scrape(registry)).toEqual({});
    counts = { whole: { requests: 5, computeNs: 2 * second }, step: { queueNs: 3 * second } };
    const first = { 'requests_total whole': 5, 'compute_seconds_total whole': 2, 'queue_seconds_total step': 3 };
    expect(await scrape(registry)).toEqual(first);
    expect(await scrape(registry)).toEqual(first);
    counts = {};
    expect(await scrape(registry)).toEqual(first);
    counts = { whole: { requests: 1, computeNs: second / 2 }, step: { queueNs: 0 } };
    const later = { 'requests_total whole': 6, 'compute_seconds_total whole': 2.5, 'queue_seconds_total step': 3 };
    expect(await scrape(registry)).toEqual(later);
    expect(await registry.metrics()).toMatch(/^# TYPE auricle_agent_engine_requests_total counter$/m);
  });

  it('concurrent scrapes share one reading, so that none looks like a reload', async () => {
    const answers: ((counts: ReadonlyMap<string, EngineCounts>) => void)[] = [];
    const registry = new Registry();
    registerEngineCounters(registry, () => new Promise((resolve) => answers.push(resolve)));
    const both = [scrape(registry), scrape(registry)];
    const told = new Map([['m', { requests: 12, computeNs: 0, queueNs: 0 }]]);
    expect(answers.length).toBe(1);
    for (const answer of answers) answer(told);
    for (const page of await Promise.all(both)) expect(page['requests_total m']).toBe(12);
  });
});
