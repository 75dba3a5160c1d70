import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { exportJWK, generateKeyPair } from 'jose';
import { type Agent, startAgent } from '../../../infra/pool/agent/agent.ts';
import { createDecoder } from '../../../infra/pool/agent/asr/decode/decoder.ts';
import type { AgentOverrides } from '../../../infra/pool/agent/backend.ts';
import { readSettings } from '../../../infra/pool/agent/settings/settings.ts';
import type { ModelDescription } from '../../../shared/pool/description.ts';
import { type FakeEdge, startFakeEdge } from '../../fake/edge.ts';
import { type FakeEngine, startFakeEngine, tokens } from '../../fake/engine.ts';

/** For `expect.poll`: it ends as soon as it is true; this is only when to give up, also on a machine that is busy. */
export const patience = { timeout: 20_000, interval: 10 };

export interface Bench {
  readonly agent: Agent;
  readonly engine: FakeEngine;
  readonly edge: FakeEdge;
  readonly folder: string;
  /** Every line the agent logged. */
  readonly lines: string[];
  stop(): Promise<void>;
}

/** Variables for an agent named `agent-1`; the files they name are made. */
export async function makeEnvironment(folder: string, edge: FakeEdge): Promise<Record<string, string>> {
  const authority = await generateKeyPair('RS256', { extractable: true });
  const file = (name: string, content: unknown) => {
    const full = path.join(folder, name);
    writeFileSync(full, typeof content === 'string' ? content : JSON.stringify(content));
    return full;
  };
  return {
    AURICLE_AGENT: 'agent-1',
    AURICLE_POOL: 'test-pool',
    AURICLE_ZONE: 'eu',
    AURICLE_REGION: 'westeurope',
    AURICLE_PLATFORM: 'AKS',
    AURICLE_HOST: '127.0.0.1',
    AURICLE_PORT: '0',
    AURICLE_MODELS: folder,
    // A closed port; suites about the heartbeat bring their own edge.
    AURICLE_EDGE_URL: 'http://127.0.0.1:9',
    AURICLE_POOL_TOKEN_FILE: file('pool.token', 'pool-token'),
    AURICLE_EDGE_KEYS_FILE: file('edge.jwks.json', edge.jwks),
    AURICLE_ATTESTATION_KEY_FILE: file('attestation.jwk.json', {
      ...(await exportJWK(authority.privateKey)),
      kid: 'dev-1',
      alg: 'RS256',
    }),
    AURICLE_STATE_DIR: path.join(folder, 'state'),
    AURICLE_MODE: 'development',
    AURICLE_WORKERS: '1',
  };
}

/** A model as the agent would describe it. */
export const testDescription: ModelDescription = {
  name: 'test-en',
  task: 'transcribe',
  languages: ['en'],
  revision: `sha256:${'0'.repeat(64)}`,
  precision: 'fp32',
  stage: 'full',
  loaded: 1,
};

export async function startBench(env: Record<string, string> = {}, overrides: AgentOverrides = {}): Promise<Bench> {
  const folder = mkdtempSync(path.join(tmpdir(), 'auricle-agent-'));
  const [engine, edge] = await Promise.all([startFakeEngine(), startFakeEdge()]);
  const lines: string[] = [];
  const settings = readSettings({
    ...(await makeEnvironment(folder, edge)),
    AURICLE_ENGINE_URL: engine.url,
    ...env,
  });
  const agent = await startAgent(settings, {
    write: (line) => lines.push(line),
    models: [
      {
        description: testDescription,
        recogniser: {
          model: 'test-en',
          frameSeconds: 0.04,
          decoder: createDecoder({ tokens, blank: 0, wordBoundary: 1 }),
        },
      },
    ],
    ...overrides,
  });
  return {
    agent,
    engine,
    edge,
    folder,
    lines,
    async stop() {
      await agent.stop();
      await engine.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
