import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { compactVerify, importJWK, type JWK } from 'jose';
import { afterEach, describe, expect, it } from 'vitest';
import { createKeys } from '../../../../../infra/pool/agent/identity/keys.ts';
import { createJobsClient } from '../../../../../infra/pool/agent/jobs/task/jobs-client.ts';
import { readSettings, SettingsError } from '../../../../../infra/pool/agent/settings/settings.ts';
import { agentProof, PROOF_TYPE } from '../../../../../shared/callers.ts';
import { jobKey, type UploadJob } from '../../../../../shared/jobs/job.ts';
import type { OpenedJob } from '../../../../../shared/jobs/upload-contract.ts';
import { startFakeEdge } from '../../../../fake/edge.ts';
import { UPLOAD } from '../../../../fake/job.ts';
import { makeEnvironment } from '../../start-agent.ts';

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

const job: UploadJob = {
  v: 1,
  kind: 'work',
  tenant: 'acme',
  upload: UPLOAD,
  run: 2,
  piece: 3,
  attempt: 1,
  zone: 'eu',
  class: 'batch',
};
const opened: OpenedJob = {
  upload: {
    tenant: 'acme',
    id: UPLOAD,
    run: 2,
    model: 'm',
    class: 'batch',
    sealed: true,
    bytes: 7,
    formats: ['json'],
    zoneKeyId: 'k',
    pieces: 5,
  },
  read: { 'pieces/3': { url: 'https://blob.test/p' } },
  write: { 'results/3': { url: 'https://blob.test/r' } },
  expires: 1,
};

async function begin(status: number, body: string) {
  const seen: { headers: Record<string, unknown>; body: Record<string, unknown>; url: string }[] = [];
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { headers, url = '' } = incoming;
    seen.push({ headers, url, body: JSON.parse(Buffer.concat(chunks).toString()) });
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(() => {
    server.close();
    server.closeAllConnections();
  });
  let runtime: { keys: readonly JsonWebKey[] } | undefined;
  const keys = await createKeys('agent-1', async (asked) => {
    runtime = asked;
    return { token: 'attestation-token', expires: 10_000 };
  });
  await keys.renew(5_000);
  const office = createJobsClient({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    agent: 'agent-1',
    keys,
    token: () => 'pool-token',
    now: () => 5_500,
  });
  return { office, seen, signKey: () => runtime?.keys.find((key) => 'use' in key && key.use === 'sig') as JWK };
}

const refusal = (reason: string) => JSON.stringify({ error: { reason } });

describe('opening a job at the back office (C11)', () => {
  it('sends the pool token and a proof by the attested key for this job', async () => {
    const { office, seen, signKey } = await begin(200, JSON.stringify(opened));
    expect(await office.open(job)).toEqual({ ok: true, value: opened });
    const [asked] = seen;
    expect(asked?.url).toBe('/api/jobs/open');
    expect(asked?.headers.authorization).toBe('Bearer pool-token');
    expect(asked?.body.job).toEqual(job);
    const verified = await compactVerify(String(asked?.body.proof), await importJWK(signKey(), 'ES256'));
    expect(verified.protectedHeader).toMatchObject({ alg: 'ES256', typ: PROOF_TYPE });
    const proof = agentProof.parse(JSON.parse(new TextDecoder().decode(verified.payload)));
    expect(proof).toEqual({ job: jobKey(job), iat: 5, agent: 'agent-1', attestation: 'attestation-token' });
  });

  it.each([
    [409, 'upload_status_wrong'],
    [404, 'upload_unknown'],
  ])('%s %s: the job is unwanted', async (status, reason) => {
    const { office } = await begin(status, refusal(reason));
    expect(await office.open(job)).toEqual({ ok: true, value: undefined });
  });

  it.each([
    [403, refusal('attestation_invalid')],
    [404, '<html>not ours</html>'],
    [500, refusal('internal')],
    [200, '{}'],
    [200, 'x'.repeat(2_000_000)],
  ])('%s: the job stays where it is', async (status, body) => {
    const { office } = await begin(status, body);
    expect(await office.open(job)).toMatchObject({ ok: false, refusal: { reason: 'uploads_unavailable' } });
  });

  it('without an answer the job stays in the queue', async () => {
    const { office } = await begin(200, '{}');
    for (const stop of stops.splice(0)) stop();
    expect(await office.open(job)).toMatchObject({ ok: false, refusal: { reason: 'uploads_unavailable' } });
  });
});

describe('settings of batch work', () => {
  async function environment(more: Record<string, string>) {
    const folder = mkdtempSync(path.join(tmpdir(), 'auricle-batch-'));
    stops.push(() => rmSync(folder, { recursive: true, force: true }));
    const env = await makeEnvironment(folder, await startFakeEdge());
    return { ...env, AURICLE_ENGINE_URL: 'http://127.0.0.1:9', ...more };
  }
  const release = { AURICLE_RELEASE_URL: 'http://127.0.0.1:9', AURICLE_ZONE_KEYS_FILE: '/keys.json' };

  it('absent: this agent takes no jobs', async () => {
    expect(readSettings(await environment({})).batch).toBeUndefined();
    expect(readSettings(await environment(release)).batch).toBeUndefined();
  });

  it('name functions, queue and region', async () => {
    const env = await environment({ ...release, AURICLE_FUNCTIONS_URL: 'http://f.test/', SQS_REGION: 'eu-west-1' });
    expect(readSettings(env).batch).toEqual({
      functionsUrl: 'http://f.test',
      queue: 'jobs',
      region: 'eu-west-1',
      endpoint: undefined,
      jobs: 2,
    });
  });

  it.each([
    [{ ...release, AURICLE_FUNCTIONS_URL: 'http://f.test' }, 'SQS_REGION is missing'],
    [{ AURICLE_FUNCTIONS_URL: 'http://f.test', SQS_REGION: 'eu-west-1' }, 'AURICLE_RELEASE_URL is missing'],
    [{ ...release, AURICLE_FUNCTIONS_URL: 'ftp://f.test' }, 'AURICLE_FUNCTIONS_URL is wrong'],
    [{ AURICLE_BATCH_JOBS: '0' }, 'AURICLE_BATCH_JOBS is wrong'],
  ])('%o: %s', async (more, line) => {
    const env = await environment(more as Record<string, string>);
    expect(() => readSettings(env)).toThrow(SettingsError);
    expect(() => readSettings(env)).toThrow(line);
  });
});
