import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAttest } from '../../../infra/pool/agent/identity/attest.ts';
import { createKeys } from '../../../infra/pool/agent/identity/keys.ts';
import { readJson, readSettings } from '../../../infra/pool/agent/settings/settings.ts';
import { verifyAttestation } from '../../../shared/seal/attestation.ts';
import { startFakeEdge } from '../../fake/edge.ts';
import { type FakeEngine, startFakeEngine } from '../../fake/engine.ts';
import { makeEnvironment } from './start-agent.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'auricle-process-'));
let engine: FakeEngine;
let env: Record<string, string>;
beforeAll(async () => {
  engine = await startFakeEngine();
  env = { ...(await makeEnvironment(folder, await startFakeEdge())), AURICLE_ENGINE_URL: engine.url };
});
afterAll(async () => {
  await engine.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe('the agent as a process', () => {
  it('says when it is ready, answers, and ends on SIGTERM', async () => {
    // A model that is there and cannot be read costs itself only.
    const parameter = (key: string, value: string) =>
      `parameters { key: "${key}" value { string_value: "${value}" } }\n`;
    const parameters = { language: 'en', sample_rate: '16000', frame_milliseconds: '40', vocabulary: 'tokens.txt' };
    const texts = Object.entries({ ...parameters, language_model: 'tokens.txt' }).map(([k, v]) => parameter(k, v));
    mkdirSync(path.join(folder, 'broken'));
    writeFileSync(path.join(folder, 'broken/tokens.txt'), 'no language model\n');
    writeFileSync(
      path.join(folder, 'broken/config.pbtxt'),
      `platform: "ensemble"\nensemble_scheduling { step [] }\n${texts.join('')}`,
    );
    const child: ChildProcess = fork('infra/pool/agent/main.ts', { env: { ...process.env, ...env }, stdio: 'pipe' });
    let log = '';
    child.stdout?.on('data', (text) => {
      log += text;
    });
    const [ready] = (await once(child, 'message')) as [{ ready: boolean; url: string }];
    expect(ready.ready).toBe(true);
    expect((await fetch(`${ready.url}/readyz`)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await once(child, 'close')).toEqual([0, null]);
    expect(log).toContain('"event":"model-broken","model":"broken"');
  });

  const fail = async (changes: Record<string, string | undefined>) => {
    const child = fork('infra/pool/agent/main.ts', { env: { ...process.env, ...env, ...changes }, stdio: 'pipe' });
    let text = '';
    child.stderr?.on('data', (part) => {
      text += part;
    });
    const [code] = await once(child, 'close');
    return { code, lines: text.trimEnd().split('\n') };
  };

  it('names each wrong setting with its meaning on a line, and exits 2', async () => {
    expect(await fail({ AURICLE_POOL: undefined, AURICLE_ZONE: 'NOT A ZONE' })).toEqual({
      code: 2,
      lines: [
        'agent: AURICLE_POOL is missing: regional pool, for example aks-westeurope',
        'agent: AURICLE_ZONE is wrong: residency zone; must equal the claim of the pool token',
      ],
    });
  });

  it('says which file it cannot read, and nothing of what is in one', async () => {
    const secret = path.join(folder, 'secret.jwk.json');
    writeFileSync(secret, '{"d": "private');
    expect(await fail({ AURICLE_EDGE_KEYS_FILE: secret })).toEqual({
      code: 2,
      lines: [`agent: ${secret} is not JSON`],
    });
    const nowhere = path.join(folder, 'nowhere');
    const { code, lines } = await fail({ AURICLE_EDGE_KEYS_FILE: nowhere });
    expect([code, lines]).toEqual([2, [`agent: ${nowhere} cannot be read (ENOENT)`]]);
    expect(await fail({ AURICLE_MODELS: nowhere })).toEqual({
      code: 2,
      lines: [
        'agent: AURICLE_MODELS cannot be read (ENOENT): folder of the model repository, the one the engine reads',
      ],
    });
  });

  it('A21 says why it cannot serve its certificate', async () => {
    const nowhere = path.join(folder, 'nowhere');
    const tls = { AURICLE_TLS_CERTIFICATE_FILE: nowhere, AURICLE_TLS_KEY_FILE: nowhere };
    const names = 'AURICLE_TLS_CERTIFICATE_FILE and AURICLE_TLS_KEY_FILE';
    const problem = `agent: ${names} are no pair to serve: certificate: cannot be read (ENOENT)`;
    expect(await fail(tls)).toEqual({ code: 2, lines: [problem] });
    expect(await fail({ ...tls, AURICLE_TLS_KEY_FILE: undefined })).toMatchObject({
      lines: ['agent: AURICLE_TLS_KEY_FILE is missing: file in PEM with its private key'],
    });
  });

  it('says when its port is taken', async () => {
    const port = new URL(engine.url).port;
    const { code, lines } = await fail({ AURICLE_PORT: port });
    expect([code, lines.length]).toEqual([2, 1]);
    expect(lines[0]).toContain('EADDRINUSE');
  });
});

describe('settings', () => {
  const key = { kty: 'EC', crv: 'P-256', x: 'x'.repeat(43), y: 'y'.repeat(43) };
  const needed = {
    AURICLE_MODE: 'production',
    AURICLE_ENDPOINT: 'https://agent.test',
    AURICLE_TLS_CERTIFICATE_FILE: '/tls.crt',
    AURICLE_TLS_KEY_FILE: '/tls.key',
    AURICLE_EDGE_URL: 'https://edge.test',
    AURICLE_ATTESTATION_URL: 'http://127.0.0.1:8080',
    AURICLE_SERVICE_KEYS: JSON.stringify({ keys: [key] }),
    AURICLE_MODEL_SIGNERS: '[]',
    AURICLE_ENGINE_REPOSITORY: '/models',
  };
  let production: Record<string, string>;
  beforeAll(() => {
    production = { ...(env as Record<string, string>), ...needed };
  });

  it('name what is wrong and never its value', () => {
    const wrong = { ...env, AURICLE_ZONE: 'NOT A ZONE', AURICLE_PORT: 'secret' };
    expect(() => readSettings(wrong)).toThrow(/AURICLE_ZONE.*AURICLE_PORT/);
    expect(() => readSettings(wrong)).not.toThrow(/secret|NOT A ZONE/);
  });

  it('a self-issued attestation is impossible in production', () => {
    expect(() => readSettings({ ...env, AURICLE_MODE: 'production' })).toThrow(/AURICLE_ATTESTATION_URL/);
    expect(() => readSettings({ ...env, AURICLE_MODE: undefined })).toThrow(/AURICLE_ATTESTATION_URL/);
    const both = readSettings({ ...production, AURICLE_ATTESTATION_KEY_FILE: '/authority.jwk.json' });
    expect(both.attestation.kind).toBe('azure');
  });

  it('C4 A21 production settings are complete, or each missing one is named', () => {
    const tls = ['AURICLE_TLS_CERTIFICATE_FILE', 'AURICLE_TLS_KEY_FILE'];
    const engine = ['AURICLE_MODEL_SIGNERS', 'AURICLE_ENGINE_REPOSITORY'];
    const left = [...tls, ...engine, 'AURICLE_SERVICE_KEYS', 'AURICLE_ENDPOINT'];
    const bare = Object.fromEntries(Object.entries(production).filter(([name]) => !left.includes(name)));
    const plain = { AURICLE_EDGE_URL: 'http://edge.test', SQS_ENDPOINT: 'https://localhost' };
    const sidecar = { AURICLE_ATTESTATION_URL: 'http://attestation.test' };
    const batch = { AURICLE_FUNCTIONS_URL: 'http://functions.test', AURICLE_ZONE_KEYS_FILE: '/zones.json' };
    const read = () => readSettings({ ...bare, ...plain, ...sidecar, ...batch });
    for (const line of [
      'AURICLE_RELEASE_URL is missing',
      'SQS_REGION is missing',
      'AURICLE_ENDPOINT is missing',
      'AURICLE_TLS_CERTIFICATE_FILE is missing',
      'AURICLE_EDGE_URL must be https',
      'AURICLE_FUNCTIONS_URL must be https',
      'SQS_ENDPOINT must not name this machine',
      'AURICLE_ATTESTATION_URL must be https',
      'AURICLE_SERVICE_KEYS is missing',
      'AURICLE_ENGINE_REPOSITORY is missing',
      // A15: unsigned files are served in development only.
      'AURICLE_MODEL_SIGNERS is missing',
    ]) {
      expect(read).toThrow(line);
    }
    const vault = { AURICLE_RELEASE_VAULT: 'https://zones.vault.azure.net', AURICLE_ZONE_KEYS_FILE: '/zones.json' };
    expect(readSettings({ ...production, ...vault }).release).toMatchObject({ vault: vault.AURICLE_RELEASE_VAULT });
    expect(() => readSettings({ ...production, ...vault, AURICLE_RELEASE_URL: 'https://release.test' })).toThrow(
      'AURICLE_RELEASE_URL goes without AURICLE_RELEASE_VAULT',
    );
    const { AURICLE_POOL_TOKEN_FILE: _, ...noToken } = production;
    const client = { AURICLE_TOKEN_URL: 'http://idp.test/token', AURICLE_TOKEN_ASSERTION_FILE: '/assertion' };
    expect(() => readSettings(noToken)).toThrow('AURICLE_POOL_TOKEN_FILE is missing');
    expect(() => readSettings({ ...production, ...client })).toThrow(
      /FILE goes without AURICLE_TOKEN_URL.*CLIENT is missing.*URL must be https/,
    );
    expect(() => readSettings({ ...env, ...vault })).toThrow('AURICLE_ATTESTATION_URL is missing');
    expect(() => readSettings({ ...production, AURICLE_MODEL_SIGNERS: '[{}]' })).toThrow(
      /^AURICLE_MODEL_SIGNERS is wrong/,
    );
  });
});

describe('attestation', () => {
  it('attests agent and keys locally, and production refuses it (A21)', async () => {
    const { attestation } = readSettings(env);
    const keys = await createKeys('agent-1', createAttest(attestation));
    const now = Date.now();
    const { token, expires } = await keys.renew(now);
    const file = env.AURICLE_ATTESTATION_KEY_FILE ?? '';
    const { kty, n, e, kid } = readJson(file) as Record<string, string>;
    const issuers = [
      {
        issuer: 'https://attestation.auricle.local',
        profile: 'development' as const,
        jwks: { keys: [{ kty: kty ?? '', n: n ?? '', e: e ?? '', kid: kid ?? '' }] },
      },
    ];
    const verified = await verifyAttestation(token, { issuers, development: true }, now);
    expect(verified).toMatchObject({ ok: true, value: { agent: 'agent-1', suites: [5], expires } });
    expect((await verifyAttestation(token, { issuers, development: false }, now)).ok).toBe(false);
  });

  it('that cannot be had rejects, for the agent to try again', async () => {
    const attest = createAttest({ kind: 'azure', url: 'http://127.0.0.1:9', provider: 'x' });
    await expect(attest({ keys: [], suites: [5], agent: 'a' }, 0)).rejects.toThrow();
  });
});
