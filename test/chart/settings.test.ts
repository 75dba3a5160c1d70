// The environment that the chart renders, read by the agent's and the engine's own readers of settings.
import { describe, expect, it } from 'vitest';
import { environment } from '../../infra/pool/agent/settings/schema.ts';
import { readSettings } from '../../infra/pool/agent/settings/settings.ts';
import { readSettings as readEngineSettings } from '../../infra/pool/engine/settings.ts';
import { example, examples, merge, render, type Values } from './helm.ts';
import { container, environmentOf, podOf } from './pod.ts';

const PUBLIC_KEY = { kty: 'EC', crv: 'P-256', x: 'A'.repeat(43), y: 'A'.repeat(43) };
/** Public keys in the operator's ConfigMap. */
const configured = {
  AURICLE_SERVICE_KEYS: JSON.stringify({ keys: [PUBLIC_KEY] }),
  AURICLE_MODEL_SIGNERS: '[]',
};

async function agentEnvironment(values: Values): Promise<Record<string, string>> {
  const agent = container(podOf(await render(values)), 'agent');
  const given = environmentOf(agent);
  for (const name of Object.keys(configured)) {
    if (name in given) given[name] = configured[name as keyof typeof configured];
  }
  return given;
}

const aks = example('aks-triton');

describe.each(examples)('R7: the agent of the example %s', (name) => {
  it('reads every variable that the chart renders, and finds no problem', async () => {
    const given = await agentEnvironment(example(name));
    expect(Object.keys(given).filter((variable) => !(variable in environment.shape))).toEqual([]);
    expect(readSettings(given)).toMatchObject({ agent: expect.stringMatching(/-0$/) });
  });
});

it('takes tokens of a provider, keys of a vault, a role of AWS', async () => {
  const role = 'arn:aws:iam::123456789012:role/agent';
  const given = await agentEnvironment(
    merge(aks, {
      functions: { releaseUrl: '', releaseVault: 'https://prdeu.vault.azure.net', awsRoleArn: role },
      poolToken: { provider: { url: 'https://id.example.com/token', client: 'pool', scope: 'pool' } },
    }),
  );
  const { AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE, ...own } = given;
  expect([AWS_ROLE_ARN, AWS_WEB_IDENTITY_TOKEN_FILE]).toEqual([role, '/var/run/secrets/aws/token']);
  expect(Object.keys(own).filter((variable) => !(variable in environment.shape))).toEqual([]);
  expect(own).toMatchObject({ AURICLE_TOKEN_SECRET_FILE: '/etc/auricle/token/token' });
  expect(readSettings(own)).toBeDefined();
});

it('renders large numbers without an exponent', async () => {
  const given = await agentEnvironment(merge(aks, { state: { gibibytes: 20_000 } }));
  expect(given.AURICLE_STORE_BYTES).toBe(String(16_000 * 2 ** 30));
});

it('announces the host that the gateway routes to the pod', async () => {
  const given = await agentEnvironment(merge(aks, { gateway: { port: 8443 } }));
  expect(readSettings(given).endpoint).toBe('https://aks-westeurope-0.pools.example.com:8443');
});

it('starts workers for its streams, not for the cores of the node', async () => {
  expect(readSettings(await agentEnvironment(merge(aks, { agent: { streams: 1_001 } }))).workers).toBe(5);
});

it('gives settings of the operator precedence', async () => {
  const given = await agentEnvironment(merge(aks, { agent: { settings: { AURICLE_AAC: 'on', AURICLE_SLOTS: 16 } } }));
  expect(readSettings(given)).toMatchObject({ aac: true, slots: 16 });
});

it('bounds models by the memory of all GPUs of a pod', async () => {
  const given = await agentEnvironment(merge(aks, { accelerator: { tensorParallel: 2, pipelineParallel: 2 } }));
  expect(readSettings(given).loader?.bytes.engine).toBe(Math.floor(79 * 4 * 0.8 * 2 ** 30));
});

it('starts the embedded engine on the loopback, with nothing loaded', async () => {
  const engine = container(podOf(await render(example('embedded'))), 'engine');
  expect(readEngineSettings([], environmentOf(engine))).toMatchObject({
    ...{ host: '127.0.0.1', port: 8000, metricsPort: 8002 },
    ...{ repository: '/models/engine', explicit: true, models: [] },
  });
});
