import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type Metric as AgentMetric, Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { edgeMetrics } from '../../edge/telemetry/metric-table.ts';
import { queueFigures } from '../../functions/jobs/context.ts';
import { registerReadiness } from '../../infra/pool/agent/agent.ts';
import { registerSettings } from '../../infra/pool/agent/backend.ts';
import { createBatchMetrics } from '../../infra/pool/agent/jobs/metrics.ts';
import { createTierMetrics } from '../../infra/pool/agent/loader/metrics.ts';
import { openQueue } from '../../infra/pool/agent/open-queue.ts';
import { createStreamMetrics } from '../../infra/pool/agent/stream/metrics.ts';
import { createMetrics } from '../../infra/pool/agent/telemetry/metrics.ts';

const none = () => 0;

/** All metrics that an agent registers, in a registry that nothing scrapes. */
function agentMetrics(): readonly AgentMetric[] {
  const registry = new Registry();
  createMetrics(registry, {
    ...{ queued: () => ({ realtime: 0, interactive: 0, default: 0, batch: 0 }), busy: none, slotsUsed: none },
    ...{ engineReady: () => true, draining: () => false, failedModels: none, engine: async () => new Map() },
    enginePage: async () => undefined,
  });
  registerSettings(registry, { slots: 1, streams: 1, price: 1 });
  createStreamMetrics(registry, { open: none, tracks: { busy: none, queued: none, rebuilding: none } });
  registerReadiness(registry, () => true);
  createBatchMetrics(registry, none);
  createTierMetrics(registry, () => []);
  openQueue({
    registry,
    settings: { agent: 'a', slots: 1, windows: false, degradeWindowMs: 0 },
    ...{ outbox: { record: () => {} }, log: () => {}, gpu: () => undefined, now: none },
    engine: { infer: async () => ({ ok: false, retryable: false, detail: '' }) } as never,
  });
  return registry.getMetricsAsArray() as unknown as readonly AgentMetric[];
}

interface Row {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly help: string;
}

const table = (rows: readonly Row[]): string[] => [
  '| name | type | labels | meaning |',
  '| --- | --- | --- | --- |',
  ...[...rows]
    .sort((one, other) => (one.name < other.name ? -1 : 1))
    .map(({ name, type, labels, help }) => {
      const named = labels.map((label) => `\`${label}\``).join(', ');
      return `| \`${name}\` | ${type} | ${named} | ${help} |`;
    }),
];

/** Members of a metric of prom-client that its types leave out. */
type Registered = AgentMetric & { name: string; help: string; labelNames: string[] };

const agents = (agentMetrics() as readonly Registered[]).map((metric) => ({
  name: metric.name,
  type: metric.constructor.name.toLowerCase(),
  labels: metric.labelNames.filter((label) => label !== 'le'),
  help: metric.help,
}));

const page = [
  '# Metrics',
  '',
  'Generated from the definitions in the code: `npm test -- -u test/infra/metrics.test.ts` writes it again. No',
  'label holds a subject, a token or content.',
  '',
  '## Edge',
  '',
  '`GET /metrics`, a token with the scope `operate`. Sums of all isolates since the Roster of each zone started; an',
  'isolate reports once a second, and a report that fails is lost. 20,000 series and 500 tenants of a zone are shown,',
  'the tenants nearest to their limit first.',
  '',
  ...table(Object.entries(edgeMetrics).map(([name, metric]) => ({ name, ...metric }))),
  '',
  '## Agent',
  '',
  "`GET /metrics` of each agent, without a token, below it the engine's own page (`nv_…` of Triton).",
  '',
  ...table(agents),
  '',
  '## Functions',
  '',
  'Figures of the log line `{"what":"queue","zone":…}` of each minute.',
  '',
  '| name | meaning |',
  '| --- | --- |',
  ...Object.entries(queueFigures).map(([name, meaning]) => `| \`${name}\` | ${meaning} |`),
  '',
].join('\n');

it('R14 every metric that the source of the agent names is registered here', () => {
  const sources = globSync('infra/pool/agent/**/*.ts').map((file) => readFileSync(file, 'utf8'));
  const named = new Set(sources.flatMap((text) => text.match(/\bauricle_agent_[a-z_]+/g) ?? []));
  expect([...named].filter((name) => !agents.some((metric) => metric.name === name))).toEqual([]);
});

it('R14 METRICS.md has every metric of edge, agent and functions', async () => {
  expect(agents.length).toBeGreaterThan(30);
  await expect(page).toMatchFileSnapshot(path.resolve('.github/METRICS.md'));
});
