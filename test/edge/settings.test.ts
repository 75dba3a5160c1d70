import { createExecutionContext } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { describe, expect, it, vi } from 'vitest';
import { app } from '../../edge/routes.ts';
import type { Bindings } from '../../edge/settings.ts';
import { problemsOf, productionTexts } from '../fake/settings.ts';
import { keys } from './authority.ts';
import { publicHalf } from './bindings.ts';

const entry = { issuer: 'https://idp.test', audience: 'auricle', scopes: ['transcribe', 'pool'] };
const own = { keys: [publicHalf(keys.issuer)] };
const issuers = (...entries: object[]) => JSON.stringify(entries);
const both = (url: string) => JSON.stringify({ eu: url, us: url });
const short = { ...keys.ticket, x: 'AAAA' };
const { kid: _, ...nameless } = keys.ticket;

describe('C4 A21 settings of a production edge', () => {
  it('serve where they are whole', () => {
    expect(problemsOf(productionTexts())).toEqual([]);
  });

  it.each<[string, Record<string, string | undefined>, string]>([
    ['no audit logs', { AUDIT_LOGS: undefined }, 'AUDIT_LOGS is missing'],
    ['no service keys', { SERVICE_KEYS: undefined }, 'SERVICE_KEYS is missing'],
    ['no key for the functions', { EDGE_KEY: undefined }, 'EDGE_KEY is missing: FUNCTIONS_URLS needs it'],
    ['an unserved zone', { ZONES: '["eu","us","ap"]' }, 'FUNCTIONS_URLS has no entry for the zone ap'],
    ['a zone without log', { ZONES: '["eu","us","ap"]' }, 'AUDIT_LOGS has no entry for the zone ap'],
    ['plain functions', { FUNCTIONS_URLS: both('http://functions.test') }, 'FUNCTIONS_URLS must be https'],
    ['local functions', { FUNCTIONS_URLS: both('https://127.0.0.1') }, 'FUNCTIONS_URLS must not name this machine'],
    ['a plain key set', { ISSUERS: issuers({ ...entry, jwksUrl: 'http://idp.test/keys' }) }, 'ISSUERS must be https'],
    [
      'an issuer without bounds beside another',
      { ISSUERS: issuers({ ...entry, jwks: own }, { ...entry, issuer: 'https://other.test', jwks: own }) },
      'ISSUERS needs tenants in each entry, since there are several issuers',
    ],
    [
      'no issuer of pool tokens',
      { ISSUERS: issuers({ ...entry, jwks: own, scopes: ['transcribe'] }) },
      'ISSUERS has no entry with the scope pool, so no agent can join',
    ],
    [
      'a private key among public ones',
      { SERVICE_KEYS: JSON.stringify({ keys: [keys.service] }) },
      'SERVICE_KEYS holds a private or shared key',
    ],
    ['a short key', { TICKET_KEY: JSON.stringify(short) }, 'TICKET_KEY has a P-256 key of the wrong length'],
    ['a key without name', { TICKET_KEY: JSON.stringify(nameless) }, 'TICKET_KEY needs a kid'],
    [
      'grants signed as service tokens',
      { GRANT_KEY: JSON.stringify(keys.edge) },
      'EDGE_KEY has a key of GRANT_KEY: each purpose needs its own',
    ],
    [
      'functions that sign as the edge',
      { SERVICE_KEYS: JSON.stringify({ keys: [publicHalf(keys.edge)] }) },
      'SERVICE_KEYS has a key of EDGE_KEY: each purpose needs its own',
    ],
  ])('with %s do not', (_, change, problem) => {
    expect(problemsOf({ ...productionTexts(), ...change })).toContain(problem);
  });

  it('name everything at once, and no value', () => {
    const secret = { kty: 'oct', k: 'very-secret' };
    const broken = { TICKET_KEY: JSON.stringify(secret), AUDIT_LOGS: undefined, ZONES: '[]' };
    const problems = problemsOf({ ...productionTexts(), ...broken });
    expect(problems.map((line) => line.split(' ')[0])).toEqual(['TICKET_KEY', 'ZONES', 'AUDIT_LOGS']);
    expect(problems.join()).not.toContain('very-secret');
  });

  it('incomplete ones serve nothing: 503 to callers, the list in /healthz and log', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {});
    const broken = { ...env, ...productionTexts(), SERVICE_KEYS: undefined } as unknown as Bindings;
    const ask = (path: string) => {
      const context = createExecutionContext() as unknown as Parameters<typeof app.fetch>[2];
      return app.fetch(new Request(`http://edge.test${path}`), broken, context);
    };
    for (const path of ['/v1/models', '/v2/health/ready', '/nowhere']) {
      const answer = await ask(path);
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, expect.any(String)]);
      const text = await answer.text();
      expect(text).toContain('"misconfigured"');
      expect(text).not.toContain('SERVICE_KEYS');
    }
    const settings = [{ setting: 'SERVICE_KEYS', problem: 'is missing' }];
    const health = await ask('/healthz');
    expect([health.status, await health.json()]).toEqual([503, { status: 'misconfigured', settings }]);
    expect(log.mock.calls).toEqual([[JSON.stringify({ event: 'misconfigured', settings })]]);
    log.mockRestore();
  });
});
