import { expect, it } from 'vitest';
import { FakeFunctions } from '../../fake/functions.ts';
import { ask, readRefusal, startAgent } from '../../fake/network.ts';
import { makeToken } from '../authority.ts';

async function create(body: unknown): Promise<Response> {
  const headers = { authorization: `Bearer ${await makeToken()}`, 'content-type': 'application/json' };
  return ask('/v1/uploads', { method: 'POST', headers, body: JSON.stringify(body) });
}

it('R3 an upload for a family names its members in the zone', async () => {
  const family = `family-${crypto.randomUUID().slice(0, 8)}`;
  const us = new FakeFunctions('us');
  const member = (language: string) => ({ name: `${family}-${language}`, family, languages: [language] });
  const detector = { name: `${family}-id`, task: 'infer' as const, detects: true as const, languages: ['en', 'es'] };
  await startAgent(`${family}-a`, { zone: 'us', beside: [member('en'), member('es'), detector] });
  await startAgent(`${family}-b`, { zone: 'eu', beside: [member('en'), member('zh')] });
  const members = { en: `${family}-en`, es: `${family}-es` };
  expect((await create({ model: family, languages: ['en', 'es', 'zh'], zone: 'us' })).status).toBe(201);
  expect(us.requests[0]?.body).toMatchObject({ model: family, members, languages: ['en', 'es', 'zh'] });
  expect((await create({ model: family, language: 'es', zone: 'us' })).status).toBe(201);
  expect(us.requests[1]?.body).toMatchObject({ model: `${family}-es`, language: 'es' });
  expect(us.requests[1]?.body).not.toHaveProperty('members');
  expect(await readRefusal(await create({ model: family, zone: 'eu' }))).toMatchObject({ code: 'language_needed' });
});
