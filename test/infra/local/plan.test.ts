import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Identity, makeIdentity } from '../../../infra/local/identity/make.ts';
import { inTurn, onModels, planParts, portNamesOf } from '../../../infra/local/plan.ts';
import { allPools, choosePools, type Pool, pools } from '../../../infra/local/pools.ts';
import { ROOT } from '../../../infra/local/root.ts';
import { environment } from '../../../infra/pool/agent/settings/schema.ts';
import { convertRepository } from '../../../infra/pool/triton/models/generate.ts';
import { temporaryFolder } from './folder.ts';

const REPOSITORY = 'infra/pool/models/repository';
const cantonese: Pool = {
  ...{ name: 'aks-eastasia', zone: 'hk', platform: 'AKS', region: 'eastasia', location: '22.32,114.17' },
  ...{ accelerator: 'cpu', price: 0.4, models: ['reference-zh', 'reference-yue'] },
};

const { path: state, remove } = temporaryFolder();
afterAll(remove);
let identity: Identity;
beforeAll(async () => {
  identity = await makeIdentity(state, [...allPools, cantonese]);
});

const plan = (chosen: readonly Pool[]) => {
  const ports = Object.fromEntries(portNamesOf(chosen).map((name, at) => [name, 1_024 + at]));
  return planParts({ state, edgePort: 1, ports, identity, pools: chosen });
};
const envOf = (chosen: readonly Pool[], part: string) => plan(chosen).find(({ name }) => name === part)?.env ?? {};

describe('C6 A9 A14 R3 the plan of pools', () => {
  it('lets later pools wait for the agent of the first, in turn', () => {
    const waiting = inTurn(plan(pools), pools).filter(({ after }) => after.includes('agent-aks-westeurope'));
    expect(waiting.map(({ name }) => name)).toEqual(['engine-eks-us-east-1', 'agent-eks-us-east-1']);
  });

  it('has an engine and an agent for each chosen pool alone', () => {
    const names = plan([cantonese]).map(({ name }) => name);
    expect(names.filter((name) => /^(engine|agent)-/.test(name))).toEqual([
      'engine-aks-eastasia',
      'agent-aks-eastasia',
    ]);
    expect(envOf([cantonese], 'functions').ZONES).toBe('["hk"]');
    expect(JSON.parse(envOf([cantonese], 'edge').WORKERS ?? '')[0].bindings.ZONES).toBe('["hk"]');
  });

  it('gives each agent its models, device, price and place', () => {
    const described = (pool: Pool) => environment.parse(envOf([...allPools, cantonese], `agent-${pool.name}`));
    expect(described(cantonese)).toMatchObject({
      AURICLE_MODEL_NAMES: ['reference-zh', 'reference-yue'],
      AURICLE_PRICE: 0.4,
      AURICLE_LOCATION: { latitude: 22.32, longitude: 114.17 },
    });
    expect(described(cantonese).AURICLE_DEVICE).toBeUndefined();
    expect(described(pools[0])).toMatchObject({ AURICLE_ACCELERATOR: 'gpu', AURICLE_DEVICE: 'h100' });
  });

  it('gives a Triton the models of its pool and their steps', async () => {
    const made = await convertRepository(path.join(ROOT, REPOSITORY), path.join(state, 'triton'), ['reference-en']);
    expect(made).toEqual(
      expect.arrayContaining(['reference-en', 'asr_inference', 'reference-en-stream', 'asr_stream']),
    );
    expect(made.filter((name) => /fp16|voice/.test(name))).toEqual([]);
  });

  it('serves all models of a repository that a caller names', () => {
    const part = plan([cantonese]).find(({ name }) => name === 'agent-aks-eastasia');
    const { env } = onModels(part as NonNullable<typeof part>, '/other');
    expect(env.AURICLE_MODELS).toBe('/other');
    expect(env.AURICLE_MODEL_NAMES).toBeUndefined();
  });

  it('names shipped models only, and pools of different kinds', () => {
    const shipped = (model: string) => path.join(ROOT, REPOSITORY, model, 'config.pbtxt');
    expect(allPools.flatMap(({ models }) => models).filter((model) => !existsSync(shipped(model)))).toEqual([]);
    const distinct = (read: (pool: Pool) => unknown) => new Set(allPools.map(read)).size;
    expect([distinct(({ zone }) => zone), distinct(({ device }) => device), distinct(({ price }) => price)]).toEqual([
      ...[3, 3, 3],
    ]);
  });
});

describe('C6 --pools', () => {
  it('takes names, zones and all', () => {
    expect(choosePools('us,eu')).toEqual(pools);
    expect(choosePools('aks-southeastasia')).toEqual(allPools.slice(2));
    expect(choosePools('all')).toBe(allPools);
  });

  it('refuses an unknown pool by name', () => {
    expect(choosePools('eu,mars')).toEqual({
      problem: '--pools mars is none of aks-westeurope (eu), eks-us-east-1 (us), aks-southeastasia (apac) and all',
    });
  });
});
