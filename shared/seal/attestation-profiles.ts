import type { JWTPayload } from 'jose';
import type { TrustedIssuer } from './attestation-policy.ts';

/** What an issuer's tokens look like and what they must say. Tokens are accepted by profile, never by guessing. */
interface Profile {
  readonly algorithms: readonly string[];
  readonly development: boolean;
  /** Times the token must carry; those it carries are checked in any case. */
  readonly claims: readonly string[];
  /** The first claim that is not as it must be, or `undefined`. */
  check(payload: JWTPayload, issuer: TrustedIssuer): string | undefined;
}

type Claims = Readonly<Record<string, unknown>>;

export const profiles: Readonly<Record<TrustedIssuer['profile'], Profile>> = {
  /**
   * Microsoft Azure Attestation of AMD SEV-SNP. Container groups have the claims flat; virtual machines (the nodes
   * with confidential GPUs) have those of the machine outside and those of the processor in `x-ms-isolation-tee`.
   */
  'azure-sevsnp': {
    algorithms: ['RS256'],
    development: false,
    claims: ['exp', 'iat', 'nbf'],
    check(payload, issuer) {
      const nested = payload['x-ms-isolation-tee'];
      if (nested === undefined) return checkProcessor(payload, 'azure-compliant-uvm', issuer);
      if (payload['x-ms-attestation-type'] !== 'azurevm') return 'x-ms-attestation-type';
      if (payload.secureboot !== true) return 'secureboot';
      if (typeof nested !== 'object' || nested === null) return 'x-ms-isolation-tee';
      return checkProcessor(nested as Claims, 'azure-compliant-cvm', issuer);
    },
  },
  /** Issued by the local stack about itself: it proves who signs, and nothing about where the agent runs. */
  development: {
    algorithms: ['ES256', 'RS256'],
    development: true,
    claims: ['exp', 'iat'],
    check: () => undefined,
  },
};

function checkProcessor(claims: Claims, compliance: string, issuer: TrustedIssuer): string | undefined {
  const allowed: Readonly<Record<string, (value: unknown) => boolean>> = {
    'x-ms-attestation-type': (value) => value === 'sevsnpvm',
    'x-ms-compliance-status': (value) => value === compliance,
    // JSON false: a missing claim or the string "false" is no promise.
    'x-ms-sevsnpvm-is-debuggable': (value) => value === false,
    'x-ms-sevsnpvm-vmpl': (value) => value === 0,
    'x-ms-sevsnpvm-hostdata': (value) => typeof value === 'string' && (issuer.hostdata ?? []).includes(value),
  };
  return Object.keys(allowed).find((claim) => !allowed[claim]?.(claims[claim]));
}
