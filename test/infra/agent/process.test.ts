import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAttest } from '../../../infra/pool/agent/attest.ts';
import { readSettings } from '../../../infra/pool/agent/settings.ts';
import { createEdgeDouble } from './double-edge.ts';
import { type EngineDouble, startEngineDouble } from './double-engine.ts';
import { makeEnvironment } from './start-agent.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'auricle-process-'));
let engine: EngineDouble;
let env: Record<string, string>;
beforeAll(async () => {
  engine = await startEngineDouble();
  env = { ...(await makeEnvironment(folder, await createEdgeDouble())), AURICLE_ENGINE_URL: engine.url };
});
afterAll(async () => {
  await engine.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe('the agent as a process', () => {
  it('says when it is ready, answers, and ends on SIGTERM', async () => {
    const child: ChildProcess = fork('infra/pool/agent/main.ts', { env: { ...process.env, ...env }, stdio: 'pipe' });
    const [ready] = (await once(child, 'message')) as [{ ready: boolean; url: string }];
    expect(ready.ready).toBe(true);
    expect((await fetch(`${ready.url}/readyz`)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });
});

describe('settings', () => {
  it('name what is wrong and never its value', () => {
    const wrong = { ...env, AURICLE_ZONE: 'NOT A ZONE', AURICLE_PORT: 'secret' };
    expect(() => readSettings(wrong)).toThrow(/AURICLE_ZONE.*AURICLE_PORT/);
    expect(() => readSettings(wrong)).not.toThrow(/secret|NOT A ZONE/);
  });

  it('a self-issued attestation is impossible in production', () => {
    expect(() => readSettings({ ...env, AURICLE_MODE: 'production' })).toThrow(/AURICLE_ATTESTATION_URL/);
    expect(() => readSettings({ ...env, AURICLE_MODE: undefined })).toThrow(/AURICLE_ATTESTATION_URL/);
    const both = readSettings({ ...env, AURICLE_MODE: 'production', AURICLE_ATTESTATION_URL: 'http://127.0.0.1:8080' });
    expect(both.attestation.kind).toBe('azure');
  });
});

describe('attestation', () => {
  it('that cannot be had rejects, for the agent to try again', async () => {
    const attest = createAttest({ kind: 'azure', url: 'http://127.0.0.1:9', provider: 'x' });
    await expect(attest({ keys: [], suites: [5], agent: 'a' }, 0)).rejects.toThrow();
  });
});
