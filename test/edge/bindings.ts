// Bindings of the Worker under test, with new authorities for each run, and settings that trust them. Runs in
// Node while the test projects are set up; the tests read the private halves from the binding TEST_KEYS.
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { scopes } from '../../shared/tenant/claims.ts';

export interface TestKeys {
  readonly issuer: JWK;
  readonly attestation: JWK;
  readonly ticket: JWK;
  readonly grant: JWK;
  readonly edge: JWK;
  readonly service: JWK;
}

export const ISSUER = 'https://issuer.test';
export const AUDIENCE = 'auricle';
export const AUTHORITY = 'https://authority.test';

async function makeKey(alg: 'ES256' | 'RS256', kid: string): Promise<JWK> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true });
  return { ...(await exportJWK(privateKey)), alg, kid };
}

export function publicHalf({ kty, crv, x, y, n, e, alg, kid }: JWK): JWK {
  return JSON.parse(JSON.stringify({ kty, crv, x, y, n, e, alg, kid })) as JWK;
}

export async function makeBindings(): Promise<Record<string, string>> {
  const [issuer, attestation, ticket, grant, edge, service] = await Promise.all([
    makeKey('ES256', 'issuer-1'),
    makeKey('RS256', 'authority-1'),
    makeKey('ES256', 'ticket-1'),
    makeKey('ES256', 'grant-1'),
    makeKey('ES256', 'edge-1'),
    makeKey('ES256', 'service-1'),
  ]);
  const keys: TestKeys = { issuer, attestation, ticket, grant, edge, service };
  return {
    TEST_KEYS: JSON.stringify(keys),
    ISSUERS: JSON.stringify([
      { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [publicHalf(issuer)] }, scopes: [...scopes, 'pool'] },
    ]),
    ATTESTATION: JSON.stringify({
      development: true,
      issuers: [{ issuer: AUTHORITY, profile: 'development', jwks: { keys: [publicHalf(attestation)] } }],
    }),
    TICKET_KEY: JSON.stringify(ticket),
    GRANT_KEY: JSON.stringify(grant),
    EDGE_KEY: JSON.stringify(edge),
    ZONES: JSON.stringify(['eu', 'us']),
    FUNCTIONS_URLS: JSON.stringify({ eu: 'http://functions-eu.test', us: 'http://functions-us.test/' }),
    SERVICE_KEYS: JSON.stringify({ keys: [publicHalf(service)] }),
    MODE: 'development',
    // As in the local stack: a loaded machine delays a Gate by more than 250 ms.
    AUDIT_WAIT_MS: '5000',
  };
}
