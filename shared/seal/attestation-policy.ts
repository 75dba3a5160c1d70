import type { JSONWebKeySet } from 'jose';
import { z } from 'zod';

const keySet = z.custom<JSONWebKeySet>(
  (value) => z.object({ keys: z.array(z.looseObject({ kty: z.string() })).min(1) }).safeParse(value).success,
  'must be a JSON Web Key Set',
);

/** Asymmetric algorithms only: with a shared secret every verifier could also issue. */
const algorithm = z.enum(['RS256', 'RS384', 'PS256', 'PS384', 'ES256', 'ES384', 'EdDSA']);

const shared = {
  /** Compared with `iss` byte for byte. */
  issuer: z.string().min(1),
  /** Keys here, or the address they are fetched from. Never the address a token names. */
  jwks: z.union([keySet, z.object({ url: z.url({ protocol: /^https$/ }) })]),
  /** Replaces those of the profile. */
  algorithms: z.array(algorithm).min(1).optional(),
};

const azure = z.object({
  ...shared,
  profile: z.literal('azure-sevsnp'),
  /** SHA-256, hex, of every container security policy that may open audio: the signed release manifest lists them. */
  hostdata: z
    .array(z.string().regex(/^[0-9a-f]{64}$/))
    .min(1)
    .optional(),
  /**
   * For virtual machines, whose containers the processor does not measure: `x-ms-policy-hash` of each
   * attestation policy of ours that checks their boot measurements. The hash of a provider's default policy
   * must not be here: any machine satisfies it.
   */
  policies: z
    .array(z.string().regex(/^[A-Za-z0-9_-]{43}$/))
    .min(1)
    .optional(),
});

const development = z.object({
  ...shared,
  profile: z.literal('development'),
  hostdata: z.array(z.string()).optional(),
});

/** Policy of accepted attestations. An issuer without a row is not accepted. */
export const attestationPolicy = z.object({
  issuers: z.array(z.discriminatedUnion('profile', [azure, development])).min(1),
  /** Only with this are self-issued attestations of the local stack accepted. Production settings must not set it. */
  development: z.boolean().default(false),
});

export type AttestationPolicy = z.infer<typeof attestationPolicy>;
export type TrustedIssuer = AttestationPolicy['issuers'][number];
