import { expect, it } from 'vitest';
import { example, merge, refusal, type Values } from './helm.ts';

const aks = example('aks-triton');

const cases: readonly (readonly [string, Values, RegExp])[] = [
  ['TorchServe', { engine: { kind: 'torchserve' } }, /no longer maintained/],
  ['GPUs for an engine of CPUs', { engine: { kind: 'embedded' } }, /embedded computes on CPUs/],
  ['TensorRT-LLM over GPUs', { engine: { kind: 'trtllm' }, accelerator: { tensorParallel: 2 } }, /takes one GPU/],
  ['a pod over several nodes', { accelerator: { tensorParallel: 8, pipelineParallel: 2 } }, /LeaderWorkerSet/],
  [
    'MIG slices together',
    { accelerator: { resource: 'nvidia.com/mig-1g.10gb', tensorParallel: 2 } },
    /MIG slices do not work together/,
  ],
  ['a speech server without image', { engine: { kind: 'riva', languages: ['en'] } }, /engine.image.repository/],
  [
    'a speech server without languages',
    { engine: { kind: 'riva', image: { repository: 'a' } } },
    /engine.languages is required/,
  ],
  ['confidential pods of EKS', { cloud: 'eks' }, /cloud eks has no nodes/],
  ['confidential pods anywhere', { confidential: { nodeSelector: null } }, /runtimeClassName or confidential.node/],
  ['confidential pods in development', { mode: 'development' }, /needs mode production/],
  ['production without attestation', { attestation: { url: '' } }, /attestation.url is required/],
  ['production without a certificate', { tls: { secret: '' } }, /tls.secret is required/],
  ['a gateway without a domain', { gateway: { domain: '' } }, /gateway.domain is required/],
  ['a Gateway without a name', { gateway: { name: '' } }, /gateway.name is required/],
  ['jobs without key release', { functions: { releaseUrl: '' } }, /one of functions.releaseUrl and/],
  [
    'two authorities of keys',
    { functions: { releaseVault: 'https://v.vault.azure.net' } },
    /one of functions.releaseUrl/,
  ],
  [
    'demand for a pool without a stored token',
    {
      ...{ scaling: { kind: 'keda' }, models: { names: ['asr'] } },
      poolToken: { provider: { url: 'https://id.example.com/token', client: 'a' } },
    },
    /scaling.demand shows functions the pool token/,
  ],
  ['jobs without a region', { functions: { sqsRegion: '' } }, /functions.sqsRegion is required/],
  ['fewer pods at most than at least', { scaling: { minReplicas: 4 } }, /minReplicas is more than/],
  ['images of no registry', { registry: '' }, /registry is required/],
  ['a name that is no host', { pool: { name: 'eu.west' } }, /DNS label/],
  ['a pool without zone', { pool: { zone: '' } }, /pool.zone is required/],
  ['a pool without token', { poolToken: { secret: '' } }, /poolToken.secret is required/],
  ['a pool without public keys', { trust: { configMap: '' } }, /trust.configMap is required/],
];

it.each(cases)('refuses %s', async (_, over, message) => {
  expect(await refusal(merge(aks, over))).toMatch(message);
});
