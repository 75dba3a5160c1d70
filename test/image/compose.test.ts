import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { readSettings as readAgentSettings } from '../../infra/pool/agent/settings/settings.ts';
import { readSettings as readEngineSettings } from '../../infra/pool/engine/settings.ts';

interface Service {
  readonly environment?: Record<string, string>;
}
const file = path.resolve(import.meta.dirname, '../../infra/pool/image/compose.yaml');
let services: Record<string, Service>;
let folder: string;
beforeAll(async () => {
  services = parse(await readFile(file, 'utf8'), { merge: true }).services;
  folder = await mkdtemp(path.join(tmpdir(), 'auricle-compose-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('T7 the compose file', () => {
  it('has settings with which an agent starts in production', async () => {
    const given = services.agent?.environment ?? {};
    // Volumes are folders of this test.
    const placed = Object.entries(given).map(([name, value]) => {
      const own = /^\/(secrets|models|state)\b/.test(value) ? path.join(folder, value.replaceAll('/', '-')) : value;
      return [name, own] as const;
    });
    for (const [, value] of placed) if (value.startsWith(folder)) await writeFile(value, '{"keys":[]}');
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const jwk = publicKey.export({ format: 'jwk' });
    const spki = publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
    const env = {
      ...Object.fromEntries(placed),
      // `pool.env`, as the head of the file lists it.
      AURICLE_AGENT: 'pool-0',
      AURICLE_POOL: 'pool',
      AURICLE_ZONE: 'eu',
      AURICLE_REGION: 'westeurope',
      AURICLE_ENDPOINT: 'https://pool-0.example.com:8443',
      AURICLE_EDGE_URL: 'https://edge.example.com',
      AURICLE_MODEL_SIGNERS: JSON.stringify([{ name: 'ops', key: spki }]),
      AURICLE_SERVICE_KEYS: JSON.stringify({ keys: [{ ...jwk, kid: 'functions-1', alg: 'ES256', use: 'sig' }] }),
      AURICLE_ATTESTATION_URL: 'http://127.0.0.1:8080',
    };
    expect(() => readAgentSettings(env)).not.toThrow();
  });

  it('starts an engine on the loopback of the agent', () => {
    expect(readEngineSettings([], services.engine?.environment ?? {})).toMatchObject({
      host: '127.0.0.1',
      port: 8_000,
    });
  });
});
