// Tokens and attestations as the authorities of the test run issue them.
import { env } from 'cloudflare:workers';
import { importJWK, SignJWT } from 'jose';
import { AUDIENCE, AUTHORITY, ISSUER, type TestKeys } from './bindings.ts';

export const keys = JSON.parse(env.TEST_KEYS) as TestKeys;

const nowSeconds = () => Math.floor(Date.now() / 1_000);
const everything = 'transcribe synthesize infer models uploads projects audit operate';

/** An access token; `claims` replace or add, `undefined` removes. */
export async function makeToken(
  claims: Record<string, unknown> = {},
  lifeSeconds = 600,
  header: Readonly<Record<string, string>> = { typ: 'at+jwt' },
): Promise<string> {
  const payload = {
    iss: ISSUER,
    aud: AUDIENCE,
    sub: 'alice',
    iat: nowSeconds(),
    exp: nowSeconds() + lifeSeconds,
    tenant: 'acme',
    scope: everything,
    zones: ['eu', 'us'],
    ...claims,
  };
  return new SignJWT(payload)
    .setProtectedHeader({ alg: 'ES256', kid: keys.issuer.kid as string, ...header })
    .sign(await importJWK(keys.issuer, 'ES256'));
}

export const makePoolToken = (pool: string, zone: string) =>
  makeToken({ tenant: undefined, scope: 'pool', pool, zone });

export interface AttestationFacts {
  readonly agent: string;
  readonly sealKey: JsonWebKey;
  readonly signKey: JsonWebKey;
  readonly lifeSeconds?: number;
  readonly suites?: readonly number[];
}

export async function makeAttestation(facts: AttestationFacts): Promise<string> {
  const { agent, sealKey, signKey, lifeSeconds = 3_600, suites = [5] } = facts;
  const runtime = {
    keys: [
      { ...sealKey, use: 'enc' },
      { ...signKey, use: 'sig' },
    ],
    suites,
    agent,
  };
  const issued = Math.min(nowSeconds(), nowSeconds() + lifeSeconds - 60);
  return new SignJWT({ 'x-ms-runtime': runtime })
    .setProtectedHeader({ alg: 'RS256', kid: keys.attestation.kid as string })
    .setIssuer(AUTHORITY)
    .setIssuedAt(issued)
    .setNotBefore(issued)
    .setExpirationTime(nowSeconds() + lifeSeconds)
    .sign(await importJWK(keys.attestation, 'RS256'));
}
