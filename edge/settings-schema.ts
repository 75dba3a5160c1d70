import type { JWK } from 'jose';
import { z } from 'zod';
import { keyYears } from '../shared/audit/key-years.ts';
import { jsonText } from '../shared/json-text.ts';
import { attestationPolicy } from '../shared/seal/attestation-policy.ts';
import { issuerBounds } from '../shared/tenant/issuer.ts';
import { traceSettings } from '../shared/trace/settings.ts';

/** Default of AUDIT_WAIT_MS: a gate answers in under 10 ms, so one that takes 250 is down. */
export const AUDIT_WAIT_DEFAULT_MS = 250;

const looseKey = z.looseObject({ kty: z.string(), kid: z.string().optional() });
/** jose reads the rest of a key itself, and refuses what it does not understand. */
const jwk = z.custom<JWK>((value) => looseKey.safeParse(value).success, 'must be a JSON Web Key');
const jwks = z.object({ keys: z.array(jwk).min(1) });

/** Signature algorithms with a public key; a shared secret or `none` cannot be configured by mistake. */
const algorithm = z.enum(['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA', 'Ed25519']);

/** `iss` and `aud` of tokens that the edge issues itself. */
export const GRANTS = { issuer: 'urn:auricle:grant', audience: 'auricle' } as const;

const issuer = z
  .object({
    /** `iss` of the tokens, compared exactly. */
    issuer: z
      .string()
      .min(1)
      .refine((name) => name !== GRANTS.issuer, 'is the name of the edge itself'),
    /** `aud` that the tokens must name. */
    audience: z.string().min(1),
    /** Public keys, inline… */
    jwks: jwks.optional(),
    /** …or where the issuer publishes them. */
    jwksUrl: z.url({ protocol: /^https?$/ }).optional(),
    algorithms: z.array(algorithm).min(1).default(['ES256']),
    ...issuerBounds,
  })
  .refine((value) => (value.jwks === undefined) !== (value.jwksUrl === undefined), 'needs jwks or jwksUrl, not both');

const privateKey = jwk.refine((key) => typeof key.d === 'string' && key.kty === 'EC', 'must be a private EC key');

const auditLog = z.object({ origin: z.string().min(1), key: z.base64().length(44), years: keyYears.optional() });
export type AuditLog = z.infer<typeof auditLog>;

/** Text bindings of the Worker. */
export const settingsSchema = z.object({
  /** Issuers of access tokens, and the checks of their tokens. */
  ISSUERS: jsonText(z.array(issuer).min(1)),
  /** Accepted attestations of agents. */
  ATTESTATION: jsonText(attestationPolicy),
  /** Private ES256 key, JWK with `kid`, that signs tickets for agents. A secret. */
  TICKET_KEY: jsonText(privateKey),
  /** Private ES256 key, JWK, that signs short-lived tokens for phones and browsers. A secret; without it none are issued. */
  GRANT_KEY: jsonText(privateKey).optional(),
  /** Private ES256 key, JWK with `kid`, that signs calls to the functions. A secret, required with FUNCTIONS_URLS. */
  EDGE_KEY: jsonText(privateKey).optional(),
  /** Residency zones served here; each has a roster of its own. */
  ZONES: jsonText(z.array(z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/)).min(1)),
  /** Zone → base URL of the functions that take its uploads; without it there are none. */
  FUNCTIONS_URLS: jsonText(z.record(z.string(), z.url({ protocol: /^https?$/ }))).optional(),
  /** Public keys of the functions (JWKS), which sign usage. Without them the edge books none. */
  SERVICE_KEYS: jsonText(jwks).optional(),
  /**
   * Zone → its audit log: what the names of its years begin with, its public Ed25519 key, 32 bytes in base64, and `years`,
   * AUDIT_KEY_YEARS of the functions, where there was another. Without it events stay in the outboxes.
   */
  AUDIT_LOGS: jsonText(z.record(z.string(), auditLog)).optional(),
  /**
   * Longest wait of a strict tenant's request for its gate, in milliseconds; then it is refused with `audit_unavailable`.
   */
  AUDIT_WAIT_MS: z.coerce.number().int().min(50).max(10_000).default(AUDIT_WAIT_DEFAULT_MS),
  /** `true` logs one line of JSON per request. */
  LOG_REQUESTS: z.enum(['true', 'false']).default('false'),
  ...traceSettings,
  /** Part of the requests that begin a trace where the caller sends none (`parentbased_traceidratio`). */
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number().min(0).max(1).default(1),
  /** `development` also trusts self-issued attestations and plain-HTTP agents. */
  MODE: z.enum(['development', 'production']),
});

export type Issuer = z.infer<typeof issuer>;
/** Values of the text bindings, read but not judged together. */
export type EdgeValues = z.output<typeof settingsSchema>;
