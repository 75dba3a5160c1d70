import type { JWTPayload } from 'jose';
import type { TrustedIssuer } from './attestation-policy.ts';

/** Shape and required claims of one issuer's tokens. Tokens are accepted by profile, never by guessing. */
interface Profile {
  readonly algorithms: readonly string[];
  readonly development: boolean;
  /** Times the token must carry; those it carries are checked in any case. */
  readonly claims: readonly string[];
  /** The runtime data of an acceptable token, not yet looked at; else the first claim that is not as it must be. */
  check(payload: JWTPayload, issuer: TrustedIssuer): { readonly runtime: unknown } | string;
}

type Claims = Readonly<Record<string, unknown>>;
type Demands = Readonly<Record<string, (value: unknown) => boolean>>;

/** Our member of the `client-payload` that a virtual machine has attested; the service gives its values in base64. */
const PAYLOAD = 'auricle';

export const profiles: Readonly<Record<TrustedIssuer['profile'], Profile>> = {
  /** Microsoft Azure Attestation of AMD SEV-SNP. */
  'azure-sevsnp': {
    algorithms: ['RS256'],
    development: false,
    claims: ['exp', 'iat', 'nbf'],
    check: (payload, issuer) =>
      payload['x-ms-isolation-tee'] === undefined ? checkContainers(payload, issuer) : checkMachine(payload, issuer),
  },
  /** Issued by the local stack about itself: it proves who signs, and nothing about where the agent runs. */
  development: {
    algorithms: ['ES256', 'RS256'],
    development: true,
    claims: ['exp', 'iat'],
    check: (payload) => ({ runtime: payload['x-ms-runtime'] }),
  },
};

/** A confidential container group: the claims of the processor are flat, and `hostdata` is what may run in it. */
function checkContainers(payload: JWTPayload, issuer: TrustedIssuer): { runtime: unknown } | string {
  const failed = firstUnmet(payload, {
    ...processor('azure-compliant-uvm'),
    'x-ms-sevsnpvm-hostdata': (value) => typeof value === 'string' && (issuer.hostdata ?? []).includes(value),
  });
  return failed ?? { runtime: payload['x-ms-runtime'] };
}

/**
 * A confidential virtual machine, such as a node with confidential GPUs: the claims of the machine are outside, those
 * of the processor nested, and its `hostdata` is always zero. What vouches for the machine is the policy it met.
 */
function checkMachine(payload: JWTPayload, issuer: TrustedIssuer): { runtime: unknown } | string {
  const policies = 'policies' in issuer ? (issuer.policies ?? []) : [];
  const outside = firstUnmet(payload, {
    'x-ms-attestation-type': (value) => value === 'azurevm',
    secureboot: (value) => value === true,
    'x-ms-azurevm-debuggersdisabled': (value) => value === true,
    'x-ms-azurevm-bootdebug-enabled': (value) => value === false,
    'x-ms-azurevm-kerneldebug-enabled': (value) => value === false,
    'x-ms-azurevm-testsigning-enabled': (value) => value === false,
    'x-ms-policy-hash': (value) => typeof value === 'string' && policies.includes(value),
  });
  const failed = outside ?? firstUnmet(asClaims(payload['x-ms-isolation-tee']), processor('azure-compliant-cvm'));
  const encoded = asClaims(asClaims(payload['x-ms-runtime'])['client-payload'])[PAYLOAD];
  return failed ?? { runtime: typeof encoded === 'string' ? decodeJson(encoded) : undefined };
}

const processor = (compliance: string): Demands => ({
  'x-ms-attestation-type': (value) => value === 'sevsnpvm',
  'x-ms-compliance-status': (value) => value === compliance,
  // JSON false: a missing claim or the string "false" is no promise.
  'x-ms-sevsnpvm-is-debuggable': (value) => value === false,
  'x-ms-sevsnpvm-vmpl': (value) => value === 0,
});

const firstUnmet = (claims: Claims, demands: Demands): string | undefined =>
  Object.keys(demands).find((claim) => !demands[claim]?.(claims[claim]));

const asClaims = (value: unknown): Claims => (typeof value === 'object' && value !== null ? (value as Claims) : {});

function decodeJson(base64: string): unknown {
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}
