import { importJWK, SignJWT } from 'jose';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { authenticate, authenticatePool } from '../../../edge/auth/authenticate.ts';
import { makeSettings } from '../../fake/settings.ts';
import { keys, makePoolToken, makeToken } from '../authority.ts';
import { AUDIENCE, ISSUER, publicHalf } from '../bindings.ts';

const URL_OF_KEYS = 'https://issuer.test/keys';
const remote = () =>
  makeSettings({ ISSUERS: JSON.stringify([{ issuer: ISSUER, audience: AUDIENCE, jwksUrl: URL_OF_KEYS }]) }).issuers;

afterEach(() => {
  vi.unstubAllGlobals();
});

describe('C4 keys that the issuer publishes', () => {
  it('are fetched once and used again', async () => {
    const asked: string[] = [];
    vi.stubGlobal('fetch', async (url: string) => {
      asked.push(String(url));
      return Response.json({ keys: [publicHalf(keys.issuer)] });
    });
    const issuers = remote();
    for (let n = 0; n < 3; n += 1) {
      // Different tokens, so that the cache of verified ones does not answer.
      const claims = await authenticate(`Bearer ${await makeToken({ jti: `${n}` })}`, issuers, Date.now());
      expect(claims).toMatchObject({ ok: true, value: { tenant: 'acme' } });
    }
    expect(asked).toEqual([URL_OF_KEYS]);
  });

  it.each<[string, () => Promise<Response>]>([
    ['the network fails', () => Promise.reject(new TypeError('Network connection lost.'))],
    ['the issuer answers 500', async () => new Response('oops', { status: 500 })],
    ['the answer is no JSON', async () => new Response('<html>')],
    ['the answer is no key set', async () => Response.json({ keys: 'none' })],
  ])('cannot be fetched, %s: refuses every token, retryable', async (_, answer) => {
    vi.stubGlobal('fetch', answer);
    const claims = await authenticate(`Bearer ${await makeToken({ jti: 'x' })}`, remote(), Date.now());
    expect(claims).toMatchObject({
      ok: false,
      refusal: {
        reason: 'identity_unavailable',
        detail: expect.stringMatching(/^keys of the issuer are not available/),
      },
    });
  });
});

describe('C4 algorithms are pinned per issuer', () => {
  it('a token in another algorithm is refused, whatever its key', async () => {
    const { issuers } = makeSettings({
      ISSUERS: JSON.stringify([
        { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [publicHalf(keys.attestation)] }, algorithms: ['ES256'] },
      ]),
    });
    const token = await new SignJWT({ tenant: 'acme', scope: 'transcribe', zones: ['eu'] })
      .setProtectedHeader({ alg: 'RS256', kid: keys.attestation.kid as string })
      .setIssuer(ISSUER)
      .setAudience(AUDIENCE)
      .setExpirationTime('5m')
      .sign(await importJWK(keys.attestation, 'RS256'));
    expect(await authenticate(`Bearer ${token}`, issuers, Date.now())).toMatchObject({
      ok: false,
      refusal: { reason: 'token_invalid' },
    });
  });

  it('a secret derived from the public key is no key', async () => {
    const { issuers } = makeSettings({});
    const secret = new TextEncoder().encode(JSON.stringify(publicHalf(keys.issuer)));
    const token = await new SignJWT({ tenant: 'acme', scope: 'transcribe', zones: ['eu'] })
      .setProtectedHeader({ alg: 'HS256', kid: keys.issuer.kid as string })
      .setIssuer(ISSUER)
      .setAudience(AUDIENCE)
      .setExpirationTime('5m')
      .sign(secret);
    expect(await authenticate(`Bearer ${token}`, issuers, Date.now())).toMatchObject({
      ok: false,
      refusal: { reason: 'token_invalid' },
    });
  });
});

const ownRow = () => ({ issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [publicHalf(keys.issuer)] } });

describe('C4 one issuer for two audiences', () => {
  const row = () => ({ issuer: ISSUER, jwks: { keys: [publicHalf(keys.issuer)] } });
  const unreachable = { issuer: ISSUER, audience: AUDIENCE, jwksUrl: URL_OF_KEYS };
  const wrongKey = { issuer: ISSUER, audience: 'second', jwks: { keys: [publicHalf(keys.ticket)] } };

  it.each<[string, unknown[], number, string]>([
    ['an entry with another key comes last', [{ ...row(), audience: 'first' }, wrongKey], 600, 'audience_wrong'],
    ['an entry of another audience comes last', [ownRow(), { ...row(), audience: 'first' }], -120, 'token_expired'],
    ['an entry cannot be checked', [unreachable, { ...row(), audience: 'first' }], 600, 'identity_unavailable'],
    ['the entry that fits says it is over', [ownRow(), unreachable], -120, 'token_expired'],
  ])('names the nearest miss: %s', async (_, rows, life, reason) => {
    vi.stubGlobal('fetch', async () => {
      throw new TypeError('Network connection lost.');
    });
    const { issuers } = makeSettings({ ISSUERS: JSON.stringify(rows) });
    expect(await authenticate(`Bearer ${await makeToken({ jti: reason }, life)}`, issuers, Date.now())).toMatchObject({
      refusal: { reason },
    });
  });

  it('a token for either is let in', async () => {
    const row = { issuer: ISSUER, jwks: { keys: [publicHalf(keys.issuer)] } };
    const { issuers } = makeSettings({
      ISSUERS: JSON.stringify([
        { ...row, audience: 'first' },
        { ...row, audience: 'second' },
      ]),
    });
    for (const aud of ['first', 'second']) {
      expect((await authenticate(`Bearer ${await makeToken({ aud })}`, issuers, Date.now())).ok).toBe(true);
    }
    expect(await authenticate(`Bearer ${await makeToken({ aud: 'third' })}`, issuers, Date.now())).toMatchObject({
      refusal: { reason: 'audience_wrong' },
    });
  });
});

describe('C4 an issuer within its bounds', () => {
  const believe = async (row: object, claims: object, header?: Record<string, string>) => {
    const { issuers } = makeSettings({ ISSUERS: JSON.stringify([{ ...ownRow(), ...row }]) });
    const token = `Bearer ${await makeToken({ jti: crypto.randomUUID(), ...claims }, 600, header)}`;
    return { claims: await authenticate(token, issuers, Date.now()), issuers, token };
  };

  it.each<[string, object, boolean]>([
    ['its own', { tenants: ['acme', 'other'] }, true],
    ['all', { tenants: ['*'] }, true],
    ['another', { tenants: ['other'] }, false],
  ])('speaks for %s tenants: %o', async (_, row, allowed) => {
    expect((await believe(row, {})).claims).toMatchObject(
      allowed ? { ok: true } : { refusal: { reason: 'token_invalid', detail: 'beyond the bounds of its issuer' } },
    );
  });

  it.each<[object, string[]]>([
    [{}, ['transcribe', 'audit']],
    [{ scopes: ['transcribe', 'operate'] }, ['transcribe', 'operate']],
    [{ scopes: ['models'] }, []],
  ])('grants the scopes of its entry: %o', async (row, scopes) => {
    const { claims } = await believe(row, { scope: 'transcribe audit operate pool' });
    expect(claims.ok && [...claims.value.scopes]).toEqual(scopes);
  });

  it('lets agents join only with the scope pool in its entry', async () => {
    const pool = { tenant: undefined, scope: 'pool', pool: 'p', zone: 'eu' };
    for (const [row, ok] of [
      [{}, false],
      [{ scopes: ['pool'] }, true],
    ] as const) {
      const { issuers, token } = await believe(row, pool);
      expect((await authenticatePool(token, issuers, Date.now())).ok).toBe(ok);
    }
  });

  it.each<[string | undefined, string[] | undefined, boolean]>([
    ['at+jwt', undefined, true],
    ['application/at+jwt', undefined, true],
    ['JWT', undefined, true],
    ['jwt', ['JWT'], true],
    ['JWT', ['at+jwt'], false],
    ['logout+jwt', undefined, false],
    ['auricle-service+jwt', undefined, false],
    ['none', ['none'], false],
    [undefined, undefined, false],
    [undefined, ['at+jwt', 'none'], true],
  ])('sends tokens of the type %s where %o are allowed: %s', async (typ, types, allowed) => {
    const { claims } = await believe({ ...(types && { types }) }, {}, typ === undefined ? {} : { typ });
    expect(claims).toMatchObject(allowed ? { ok: true } : { refusal: { reason: 'token_invalid', detail: 'typ' } });
  });
});

describe('C5 the token of an agent', () => {
  it('names its pool and zone', async () => {
    const { issuers } = makeSettings({});
    const token = `Bearer ${await makePoolToken('aks-test', 'eu')}`;
    expect(await authenticatePool(token, issuers, Date.now())).toMatchObject({
      ok: true,
      value: { pool: 'aks-test', zone: 'eu' },
    });
    expect(await authenticate(token, issuers, Date.now())).toMatchObject({
      ok: false,
      refusal: { reason: 'token_invalid' },
    });
  });

  it.each([[undefined], [''], ['Basic abc'], ['Bearer a.b'], [`Bearer ${'a'.repeat(9_000)}.b.c`]])(
    '%s is none',
    async (header) => {
      const refused = await authenticatePool(header, makeSettings({}).issuers, Date.now());
      expect(refused.ok).toBe(false);
    },
  );
});
