import type { JSONWebKeySet, JWK } from 'jose';
import { z } from 'zod';
import { keyYears } from '../shared/audit/key-years.ts';
import { retentionNames } from '../shared/audit/retention.ts';
import { jsonText } from '../shared/json-text.ts';
import { limits } from '../shared/limits.ts';
import { signerKey } from '../shared/model/signature/key.ts';
import { attestationPolicy } from '../shared/seal/attestation-policy.ts';
import { zoneKeys } from '../shared/seal/zone-key.ts';
import { issuerBounds } from '../shared/tenant/issuer.ts';
import { zoneName } from '../shared/upload/job.ts';

const keySet = z.custom<JSONWebKeySet>(
  (value) => z.object({ keys: z.array(z.looseObject({ kty: z.string() })).min(1) }).safeParse(value).success,
  'must be a JSON Web Key Set',
);

const privateKey = z.custom<JWK>(
  (value) => z.looseObject({ kty: z.literal('EC'), d: z.string() }).safeParse(value).success,
  'must be a private EC key',
);

const issuer = z.object({
  /** `iss` and `aud` of the tokens, compared exactly. */
  issuer: z.string().min(1),
  audience: z.string().min(1),
  jwks: keySet,
  algorithms: z
    .array(z.enum(['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA', 'Ed25519']))
    .min(1)
    .default(['ES256']),
  ...issuerBounds,
});

/** Tokens of the app go to that host: no others than those of vaults, and one version that never becomes another key. */
const vaultKeyId = z
  .string()
  .regex(
    /^https:\/\/[a-z0-9-]{3,24}\.(vault|managedhsm)\.(azure\.net|azure\.cn|usgovcloudapi\.net)\/keys\/[A-Za-z0-9-]{1,127}\/[0-9a-f]{32}$/,
  );

/** Everything the functions are told from outside. The only reader of the environment. */
export const settingsSchema = z.object({
  /** Connection string of the storage account that holds uploads, outcomes, their rows and their notices. */
  STORAGE_CONNECTION: z.string().min(1),
  /** Where SQS answers. Left out in the cloud, where the region alone says it. */
  SQS_ENDPOINT: z.url().optional(),
  /** Region of the job queues. */
  SQS_REGION: z.string().min(1),
  /** What the names of the queues begin with: zone and model follow, and in `jobs-eu-dlq` is what nobody could finish. */
  JOBS_QUEUE: z.string().min(1).default('jobs'),
  /** Residency zones, each with a queue of its own. */
  ZONES: jsonText(z.array(zoneName).min(1)).default(['eu', 'us']),
  /** By zone, the public keys that files are sealed to, the newest first. A zone without one takes no uploads. */
  ZONE_KEYS: jsonText(zoneKeys).default({}),
  /** Public keys of the edge (JWKS): what it asks is signed. Without them nobody may ask. */
  EDGE_KEYS: jsonText(keySet).optional(),
  /** Who issues pool tokens. */
  ISSUERS: jsonText(z.array(issuer).min(1)).optional(),
  /** Who attests agents, and what must be attested. */
  ATTESTATION: jsonText(attestationPolicy).optional(),
  /** Base URL of the edge, which books what uploads have used. Without it or the key nobody does. */
  EDGE_URL: z.url({ protocol: /^https?$/ }).optional(),
  /** Private ES256 key, JWK with `kid`, that what the edge is told is signed with. A secret. */
  SERVICE_KEY: jsonText(privateKey).optional(),
  /** 32 bytes in base64, from which each tenant's secret for notices is made. A secret; without it none are sent. */
  WEBHOOK_KEY: z.base64().min(40).optional(),
  /** What the names of the audit logs begin with: an address that belongs to whoever runs this, without a scheme. */
  AUDIT_ORIGIN: z
    .string()
    .regex(/^[a-z0-9.-]+(\/[a-z0-9.-]+)*$/)
    .optional(),
  /** 32 bytes in base64, the private Ed25519 key of the audit logs. A secret; without it there are none. */
  AUDIT_KEY: z.base64().length(44).optional(),
  /** The same of the key that signs from a year to come on, so that the new year finds it here. A secret. */
  AUDIT_NEXT_KEY: z.base64().length(44).optional(),
  /** Public halves of the keys of the logs, and the years that each signs; one that is not named signs all. */
  AUDIT_KEY_YEARS: jsonText(keyYears).optional(),
  /** A second key that signs checkpoints: private P-256 key, PKCS #8 in base64 or JWK. A secret. */
  AUDIT_P256_KEY: z.string().min(1).optional(),
  /**
   * The same key where hardware keeps it: which version of which key of Azure Key Vault or a Managed HSM, its public half as
   * SPKI in base64, and the client id of the identity that may use it, if that is not the app's own.
   */
  AUDIT_VAULT_KEY: jsonText(
    z.strictObject({ id: vaultKeyId, publicKey: z.base64().length(124), identity: z.uuid().optional() }),
  ).optional(),
  /** Who is asked to witness the logs: the `witness`, `group` and `quorum` lines of a C2SP tlog-policy. */
  AUDIT_WITNESSES: z.string().max(limits.auditPolicyBytes.value).optional(),
  /**
   * 32 bytes in base64, encrypts the keys of what leaves hide. Several with commas between them while one takes the place of
   * another: the first encrypts, all decrypt. A secret; without it there are no logs.
   */
  AUDIT_SIDECAR_KEY: z
    .string()
    .regex(/^[A-Za-z0-9+/]{43}=(,[A-Za-z0-9+/]{43}=)*$/)
    .optional(),
  /** Class of retention (`shared/audit/retention.ts`) of what the leaves of a tenant hide. */
  AUDIT_RETENTION: jsonText(
    z.strictObject({
      default: z.enum(retentionNames).default('standard'),
      tenants: z.record(z.string(), z.enum(retentionNames)).default({}),
    }),
  ).optional(),
  /** JSON, who may sign revisions of models and their transitions; without it no revisions are kept. */
  MODEL_SIGNERS: jsonText(z.array(signerKey).min(1).max(100)).optional(),
  /** Share of the requests of which revisions in the stage grey get a copy, 0 to 1; `limits.mirrorShare` where it is not said. */
  MIRROR_SHARE: z.coerce.number().min(0).max(1).optional(),
  /** Folder with `VERIFY.md`, `verify.mjs` and `verify.html`, which go into every export; without it there are none. */
  AUDIT_VERIFIER: z.string().min(1).optional(),
  /** `development` also trusts self-issued attestations, and sends notices to this machine and over plain HTTP. */
  MODE: z.enum(['development', 'production']).default('production'),
});

export type Settings = z.infer<typeof settingsSchema>;
