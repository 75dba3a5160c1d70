import { createLocalJWKSet, createRemoteJWKSet, decodeJwt, errors, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { CLOCK_SKEW_S } from '../clock-offset.ts';
import { refuse } from '../refusal.ts';
import { no, ok, type Result } from '../result.ts';
import type { AttestationPolicy, TrustedIssuer } from './attestation-policy.ts';
import { profiles } from './attestation-profiles.ts';
import { type AttestedKeys, readRuntime } from './attestation-runtime.ts';
import { ATTESTATION_CHARACTERS } from './limits.ts';

/** Life of an Azure attestation token; an older measurement says little about the running code. */
export const ATTESTATION_S = 8 * 3600;

export type { AttestationPolicy } from './attestation-policy.ts';

/** A verified attestation. Its holder may seal to `sealKey`. */
export interface Attested extends AttestedKeys {
  readonly issuer: string;
  /** Seconds since 1970 (RFC 7519 NumericDate), as in `Claims`. */
  readonly expires: number;
}

/** Finds the keys of an issuer. Handed in by tests; otherwise the issuer's own key set, fetched and cached by jose. */
export type FindKeys = (issuer: TrustedIssuer) => JWTVerifyGetKey;

/**
 * Verifies an attestation token against the issuers we trust, at `now` (ms since 1970). Everything that makes it
 * unacceptable is the refusal `attestation_invalid`, whose detail names the check or claim and never quotes the token.
 * The header's `jku`, `jwk` and `x5u` are not looked at: keys come from the policy.
 */
export async function verifyAttestation(
  token: string,
  policy: AttestationPolicy,
  now: number,
  findKeys: FindKeys = keysOf,
): Promise<Result<Attested>> {
  if (token.length > ATTESTATION_CHARACTERS) return refused('too long');
  try {
    const claimed = decodeJwt(token).iss;
    const issuer = policy.issuers.find((row) => row.issuer === claimed);
    if (!issuer) return refused('issuer is not trusted');
    const profile = profiles[issuer.profile];
    if (profile.development && !policy.development) return refused('development issuer');
    const { payload } = await jwtVerify(token, findKeys(issuer), {
      issuer: issuer.issuer,
      algorithms: issuer.algorithms ? [...issuer.algorithms] : [...profile.algorithms],
      currentDate: new Date(now),
      clockTolerance: CLOCK_SKEW_S,
      maxTokenAge: ATTESTATION_S,
      requiredClaims: [...profile.claims],
    });
    const checked = profile.check(payload, issuer);
    if (typeof checked === 'string') return refused(checked);
    const keys = await readRuntime(checked.runtime);
    if (typeof keys === 'string') return refused(keys);
    return ok({ ...keys, issuer: issuer.issuer, expires: payload.exp as number });
  } catch (error) {
    return refused(reasonOf(error));
  }
}

const refused = (detail: string) => no(refuse('attestation_invalid', undefined, `attestation: ${detail}`));

/** A code and a claim's name: messages of the library may quote what they were given. */
function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed) return error.claim;
  return error instanceof errors.JOSEError ? error.code : 'the keys of the issuer cannot be had';
}

const remote = new Map<string, JWTVerifyGetKey>();

/** One cache per key set address; the addresses come from settings, so there are few. */
function keysOf(issuer: TrustedIssuer): JWTVerifyGetKey {
  if ('keys' in issuer.jwks) return createLocalJWKSet(issuer.jwks);
  const { url } = issuer.jwks;
  const known = remote.get(url) ?? createRemoteJWKSet(new URL(url));
  remote.set(url, known);
  return known;
}
