import { describe, expect, it } from 'vitest';
import { readAddress } from '../../../../edge/protocol/kserve/address.ts';
import { INFER_BODY_BYTES } from '../../../../shared/kserve/limits.ts';
import { bearer, doubling, infer, readError } from '../../../fake/kserve-agent.ts';
import { ask, startAgent } from '../../../fake/network.ts';

const unique = () => `model-${crypto.randomUUID().slice(0, 8)}`;

describe('T2 C10 unsupported features are refused in Triton’s shape', () => {
  it.each([
    ['POST', '/v2/repository/index', 501, 'The model_repository extension is not offered here.'],
    ['POST', '/v2/repository/models/x/load', 501, 'The model_repository extension is not offered here.'],
    ['POST', '/v2/repository/models/x/unload', 501, 'The model_repository extension is not offered here.'],
    ['GET', '/v2/systemsharedmemory/status', 501, 'The system_shared_memory extension is not offered here.'],
    ['POST', '/v2/cudasharedmemory/region/r/register', 501, 'The cuda_shared_memory extension is not offered here.'],
    ['GET', '/v2/trace/setting', 501, 'The trace extension is not offered here.'],
    ['POST', '/v2/models/x/trace/setting', 501, 'The trace extension is not offered here.'],
    ['POST', '/v2/logging', 501, 'The logging extension is not offered here.'],
    ['GET', '/v2/models/stats', 501, 'The statistics of all models extension is not offered here.'],
    ['GET', '/v2/health', 404, 'This address does not exist. GET /v1/openapi.json lists those that do.'],
    ['GET', '/v2/models', 404, 'This address does not exist. GET /v1/openapi.json lists those that do.'],
    ['GET', '/v2/models/x/versions/one', 404, 'This address does not exist. GET /v1/openapi.json lists those that do.'],
    ['GET', '/v2/models/x/constructor', 404, 'This address does not exist. GET /v1/openapi.json lists those that do.'],
    ['GET', '/v2/models/x/infer', 405, 'This address accepts POST only.'],
    ['POST', '/v2/models/x', 405, 'This address accepts GET only.'],
    ['DELETE', '/v2', 405, 'This address accepts GET only.'],
    ['GET', '/v2/models/..%2Fhealth/ready', 404, 'The model "../health" does not exist here.'],
    ['GET', '/v2/models/%ff/ready', 404, 'The model "%ff" does not exist here.'],
  ])('%s %s: %i', async (method, path, status, error) => {
    expect(await readError(await ask(path, { method }))).toEqual({ status, error });
  });

  it('reads every address as Triton does', () => {
    const of = (method: string, path: string) => {
      const read = readAddress(method, path);
      return read.ok ? read.value : read.refusal.reason;
    };
    expect(of('POST', '/v2/models/m/versions/12/infer')).toEqual({
      about: 'model',
      model: 'm',
      version: '12',
      operation: 'infer',
    });
    expect(of('GET', '/v2/models/m/ready')).toEqual({
      about: 'model',
      model: 'm',
      version: undefined,
      operation: 'ready',
    });
    expect(of('GET', '/v2/models/m/')).toMatchObject({ operation: 'metadata' });
    expect(of('POST', '/v2/models/m/generate_stream')).toMatchObject({ operation: 'generate_stream' });
  });
});

describe('C4 A21 refused callers', () => {
  it.each([
    ['infer', 'POST', '/infer', 'transcribe models', 'infer'],
    ['generate', 'POST', '/generate', 'transcribe models', 'infer'],
    ['metadata', 'GET', '', 'transcribe', 'infer'],
    ['ready', 'GET', '/ready', 'transcribe', 'infer'],
    ['config', 'GET', '/config', 'infer models', 'operate'],
    ['stats', 'GET', '/stats', 'infer models', 'operate'],
  ])('%s needs its scope', async (_, method, suffix, scope, wanted) => {
    const answer = await ask(`/v2/models/m${suffix}`, { method, headers: await bearer({ scope }) });
    expect(await readError(answer)).toEqual({ status: 403, error: `The token lacks the scope "${wanted}".` });
    const nobody = await ask(`/v2/models/m${suffix}`, { method });
    expect(nobody.headers.get('www-authenticate')).toBe('Bearer realm="auricle"');
    expect(await readError(nobody)).toMatchObject({ status: 401 });
  });

  it('C6 nor to another zone, nor for another language, nor unsealed', async () => {
    const name = unique();
    await startAgent(name, { zone: 'us' });
    await startAgent(unique(), { zone: 'eu' });
    expect(await readError(await infer(name, { claims: { zones: ['eu'] } }))).toMatchObject({ status: 403 });
    expect(await readError(await infer(name, { claims: { languages: ['de'] } }))).toMatchObject({ status: 403 });
    expect(await readError(await infer(name, { claims: { sealing: 'client' } }))).toMatchObject({ status: 403 });
    expect(await readError(await infer(unique()))).toMatchObject({ status: 404 });
  });

  it('C4 the allowance applies, with retry advice', async () => {
    const name = unique();
    (await startAgent(name)).script = doubling(name);
    const claims = { tenant: `t-${unique()}`, allowance: { requestsPerMinute: 1 } };
    expect((await infer(name, { claims })).status).toBe(200);
    const refused = await infer(name, { claims });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await readError(refused)).toEqual({
      status: 429,
      error: 'Too many requests in this minute: 1 are allowed.',
    });
  });

  it('A21 a denial is recorded', async () => {
    const tenant = `t-${unique()}`;
    await infer('m', { claims: { tenant, sealing: 'client' } });
    const page = await ask(`/v1/audit/outbox?tenant=${tenant}`, { headers: await bearer() });
    expect(await page.json()).toMatchObject({
      rows: [{ event: { type: 'inference.denied', action: 'infer', reason: 'sealing_required' } }],
    });
  });
});

describe('bodies that are refused', () => {
  it.each([
    [{ 'content-encoding': 'br' }, 501, /^content-encoding 'br' is not supported/],
    [{ 'x-auricle-sequence': 'x'.repeat(300) }, 400, /x-auricle-sequence/],
    [{ 'x-auricle-session': 'x'.repeat(300) }, 400, /x-auricle-session/],
  ])('by its headers %#', async (headers, status, error) => {
    const refused = await readError(await infer('m', { headers }));
    expect(refused.status).toBe(status);
    expect(refused.error).toMatch(error);
  });

  it('over the bound before a byte was read', async () => {
    const bytes = INFER_BODY_BYTES + 1;
    const answer = await infer('m', { body: new Uint8Array(bytes) });
    expect(await readError(answer)).toEqual({
      status: 400,
      error: `The request is over ${INFER_BODY_BYTES} bytes after decompression.`,
    });
  });
});
