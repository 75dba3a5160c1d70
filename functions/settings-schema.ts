import type { JSONWebKeySet, JWK } from 'jose';
import { z } from 'zod';
import { keyYears } from '../shared/audit/key-years.ts';
import { POLICY_BYTES } from '../shared/audit/policy.ts';
import { jsonText } from '../shared/json-text.ts';
import { zoneName } from '../shared/names.ts';
import { signerKey } from '../shared/registry/signature-key.ts';
import { attestationPolicy } from '../shared/seal/attestation-policy.ts';
import { zoneKeys } from '../shared/seal/zone-key.ts';
import { issuerBounds } from '../shared/tenant/issuer.ts';
import { retentionNames } from './audit/sidecar/retention.ts';

const keySet = z.custom<JSONWebKeySet>(
  (value) => z.object({ keys: z.array(z.looseObject({ kty: z.string() })).min(1) }).safeParse(value).success,
  'must be a JSON Web Key Set',
);

const privateKey = z.custom<JWK>(
  (value) => z.looseObject({ kty: z.literal('EC'), d: z.string() }).safeParse(value).success,
  'must be a private EC key',
);

const issuer = z
  .object({
    /** `iss` and `aud` of the tokens, compared exactly. */
    issuer: z.string().min(1),
    audience: z.string().min(1),
    /** Public keys, or the address at which the issuer publishes them. */
    jwks: keySet.optional(),
    jwksUrl: z.url({ protocol: /^https?$/ }).optional(),
    algorithms: z
      .array(z.enum(['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA', 'Ed25519']))
      .min(1)
      .default(['ES256']),
    ...issuerBounds,
  })
  .refine((value) => (value.jwks === undefined) !== (value.jwksUrl === undefined), 'needs jwks or jwksUrl, not both');
export type Issuer = z.output<typeof issuer>;

/** Id of a vault key. Tokens of the app go to its host: vault hosts only, and a fixed key version. */
const vaultKeyId = z
  .string()
  .regex(
    /^https:\/\/[a-z0-9-]{3,24}\.(vault|managedhsm)\.(azure\.net|azure\.cn|usgovcloudapi\.net)\/keys\/[A-Za-z0-9-]{1,127}\/[0-9a-f]{32}$/,
  );

/** Settings of the functions. The schema is the only reader of the environment. */
export const settingsSchema = z.object({
  /** Connection string of the storage account that holds uploads, outcomes, their rows and their notices. */
  STORAGE_CONNECTION: z.string().min(1).optional(),
  /**
   * In its place the addresses of the account's services, for the managed identity of the app. The functions host reads
   * those of blobs and queues, and the client id of a user-assigned identity, under the same names.
   */
  STORAGE_CONNECTION__blobServiceUri: z.url({ protocol: /^https?$/ }).optional(),
  STORAGE_CONNECTION__queueServiceUri: z.url({ protocol: /^https?$/ }).optional(),
  STORAGE_CONNECTION__tableServiceUri: z.url({ protocol: /^https?$/ }).optional(),
  STORAGE_CONNECTION__clientId: z.uuid().optional(),
  /** Endpoint of SQS; absent in the cloud, where the region determines it. */
  SQS_ENDPOINT: z.url().optional(),
  /** Region of the job queues. */
  SQS_REGION: z.string().min(1),
  /**
   * Prefix of the queue names: zone and model follow, and `jobs-eu-dlq` is the dead-letter queue of zone eu.
   */
  JOBS_QUEUE: z.string().min(1).default('jobs'),
  /** Residency zones, each with a queue of its own. */
  ZONES: jsonText(z.array(zoneName).min(1)).default(['eu', 'us']),
  /** Public keys that files are sealed to, by zone, newest first. A zone without one takes no uploads. */
  ZONE_KEYS: jsonText(zoneKeys).default({}),
  /** Public keys of the edge (JWKS), which signs its calls. Without them all of its calls are refused. */
  EDGE_KEYS: jsonText(keySet).optional(),
  /** Issuers of pool tokens. */
  ISSUERS: jsonText(z.array(issuer).min(1)).optional(),
  /** Attesters of agents, and required measurements. */
  ATTESTATION: jsonText(attestationPolicy).optional(),
  /**
   * Base URL of the edge, which books the usage of uploads. Without it or SERVICE_KEY usage is not booked.
   */
  EDGE_URL: z.url({ protocol: /^https?$/ }).optional(),
  /** Private ES256 key, JWK with `kid`, that signs messages to the edge. A secret. */
  SERVICE_KEY: jsonText(privateKey).optional(),
  /**
   * 32 bytes in base64, from which each tenant's webhook secret is derived. A secret; without it no notices
   * are sent.
   */
  WEBHOOK_KEY: z.base64().min(40).optional(),
  /** Prefix of the names of the audit logs: an address that the operator owns, without a scheme. */
  AUDIT_ORIGIN: z
    .string()
    .regex(/^[a-z0-9.-]+(\/[a-z0-9.-]+)*$/)
    .optional(),
  /** Private Ed25519 key of the audit logs, 32 bytes in base64. A secret; without it there are no logs. */
  AUDIT_KEY: z.base64().length(44).optional(),
  /** Private Ed25519 key that signs from a coming year on, deployed before that year begins. A secret. */
  AUDIT_NEXT_KEY: z.base64().length(44).optional(),
  /**
   * Public halves of the log keys, and the years that each signs; a key that is not listed signs all years.
   */
  AUDIT_KEY_YEARS: jsonText(keyYears).optional(),
  /** A second key that signs checkpoints: private P-256 key, PKCS #8 in base64 or JWK. A secret. */
  AUDIT_P256_KEY: z.string().min(1).optional(),
  /**
   * The same key in hardware: its version in Azure Key Vault or a Managed HSM, its public half as SPKI in
   * base64, and the client id of the identity that may use it, if that is not the app's own.
   */
  AUDIT_VAULT_KEY: jsonText(
    z.strictObject({ id: vaultKeyId, publicKey: z.base64().length(124), identity: z.uuid().optional() }),
  ).optional(),
  /** Witnesses of the logs: the `witness`, `group` and `quorum` lines of a C2SP tlog-policy. */
  AUDIT_WITNESSES: z.string().max(POLICY_BYTES).optional(),
  /**
   * Key that encrypts the keys of hidden values, 32 bytes in base64. During a rotation several, separated by
   * commas: the first encrypts, all decrypt. A secret; without it there are no logs.
   */
  AUDIT_SIDECAR_KEY: z
    .string()
    .regex(/^[A-Za-z0-9+/]{43}=(,[A-Za-z0-9+/]{43}=)*$/)
    .optional(),
  /** Retention class (`functions/audit/sidecar/retention.ts`) of each tenant's hidden values. */
  AUDIT_RETENTION: jsonText(
    z.strictObject({
      default: z.enum(retentionNames).default('standard'),
      tenants: z.record(z.string(), z.enum(retentionNames)).default({}),
    }),
  ).optional(),
  /** JSON, trusted signers of revisions and transitions; without it no revisions are registered. */
  MODEL_SIGNERS: jsonText(z.array(signerKey).min(1).max(100)).optional(),
  /** Share of the requests that grey revisions get a copy of, 0 to 1; `MIRROR_SHARE` by default. */
  MIRROR_SHARE: z.coerce.number().min(0).max(1).optional(),
  /**
   * Folder with `VERIFY.md`, `verify.mjs` and `verify.html`, which every export includes; without it exports
   * are off.
   */
  AUDIT_VERIFIER: z.string().min(1).optional(),
  /** `development` also trusts self-issued attestations, and sends notices to this machine and over plain HTTP. */
  MODE: z.enum(['development', 'production']).default('production'),
});

export type Settings = z.infer<typeof settingsSchema>;
