import type { JSONWebKeySet, JWK } from 'jose';
import { z } from 'zod';
import { HEADS } from '../shared/audit/head.ts';
import { keyYears } from '../shared/audit/key-years.ts';
import { jsonText } from '../shared/json-text.ts';
import { type AttestationPolicy, attestationPolicy } from '../shared/seal/attestation-policy.ts';
import type { Spare } from './audit/spare.ts';
import type { Roster } from './pool/roster.ts';
import type { Gate } from './tenant/gate.ts';

/** Bindings of the Worker, as the runtime hands them over. This file alone reads the text ones. */
export interface Bindings {
  readonly GATE: ObjectNamespace<Pick<Gate, 'apply' | 'outbox' | 'commitmentOf' | 'quota'>>;
  /** Where a gate's events go when it does not answer; without it a strict tenant is refused at once. */
  readonly SPARE?: ObjectNamespace<Pick<Spare, 'record' | 'outbox' | 'commitmentOf'>> | undefined;
  readonly ROSTER: ObjectNamespace<Pick<Roster, 'snapshot' | 'outbox' | 'record' | 'release'>>;
  /** Live sessions, spoken to over `fetch` only. */
  readonly STREAM: ObjectNamespace<object>;
  readonly ISSUERS: string;
  readonly ATTESTATION: string;
  readonly TICKET_KEY: string;
  readonly GRANT_KEY?: string | undefined;
  readonly ZONES: string;
  readonly MODE: string;
  readonly BACK_OFFICES?: string | undefined;
  readonly SERVICE_KEYS?: string | undefined;
  readonly AUDIT_LOGS?: string | undefined;
}

const looseKey = z.looseObject({ kty: z.string(), kid: z.string().optional() });
/** jose reads the rest of a key itself, and refuses what it does not understand. */
const jwk = z.custom<JWK>((value) => looseKey.safeParse(value).success, 'must be a JSON Web Key');
const jwks = z.object({ keys: z.array(jwk).min(1) });

/** Signature algorithms with a public key; a shared secret or `none` cannot be configured by mistake. */
const algorithm = z.enum(['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA', 'Ed25519']);

const issuer = z
  .object({
    /** `iss` of the tokens, compared exactly. */
    issuer: z.string().min(1),
    /** `aud` that the tokens must name. */
    audience: z.string().min(1),
    /** Public keys, inline… */
    jwks: jwks.optional(),
    /** …or where the issuer publishes them. */
    jwksUrl: z.url({ protocol: /^https?$/ }).optional(),
    algorithms: z.array(algorithm).min(1).default(['ES256']),
  })
  .refine((value) => (value.jwks === undefined) !== (value.jwksUrl === undefined), 'needs jwks or jwksUrl, not both');

const privateKey = jwk.refine((key) => typeof key.d === 'string' && key.kty === 'EC', 'must be a private EC key');

const auditLog = z.object({ origin: z.string().min(1), key: z.base64().length(44), years: keyYears.optional() });
export type AuditLog = z.infer<typeof auditLog>;

const settings = z.object({
  /** Who issues access tokens, and how they are checked. */
  ISSUERS: jsonText(z.array(issuer).min(1)),
  /** Who attests agents, and what must be attested. */
  ATTESTATION: jsonText(attestationPolicy),
  /** Private ES256 key, JWK with `kid`, that signs tickets for agents. A secret. */
  TICKET_KEY: jsonText(privateKey),
  /** Private ES256 key, JWK, that signs short-lived tokens for phones and browsers. A secret; without it none are issued. */
  GRANT_KEY: jsonText(privateKey).optional(),
  /** Residency zones served here; each has a roster of its own. */
  ZONES: jsonText(
    z
      .array(
        z
          .string()
          .regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/)
          .refine((zone) => zone !== HEADS, 'is the name of the log of checkpoints'),
      )
      .min(1),
  ),
  /** Zone → base URL of the functions that take its uploads; without it there are none. */
  BACK_OFFICES: jsonText(z.record(z.string(), z.url({ protocol: /^https?$/ }))).optional(),
  /** Public keys of those functions (JWKS): what they tell of uploads is signed. Without them nothing is booked. */
  SERVICE_KEYS: jsonText(jwks).optional(),
  /**
   * Zone → its audit log: what the names of its years begin with, its public Ed25519 key, 32 bytes in base64, and `years`,
   * AUDIT_KEY_YEARS of the functions, where there was another. Without it events stay in the outboxes. `heads` in the place of a zone is the log of checkpoints.
   */
  AUDIT_LOGS: jsonText(z.record(z.string(), auditLog)).optional(),
  /** `development` also trusts self-issued attestations and plain-HTTP agents. */
  MODE: z.enum(['development', 'production']),
});

export type Issuer = z.infer<typeof issuer>;

export interface Settings {
  readonly issuers: readonly Issuer[];
  readonly attestation: AttestationPolicy;
  readonly ticketKey: JWK;
  readonly grantKey: JWK | undefined;
  readonly zones: readonly string[];
  /** Zone → base URL of its functions, without a slash at the end. */
  readonly backOffices: ReadonlyMap<string, string>;
  readonly serviceKeys: JSONWebKeySet | undefined;
  /** Zone → its audit log. */
  readonly auditLogs: ReadonlyMap<string, AuditLog>;
  /** The log of checkpoints, which is no zone's. */
  readonly auditHeads?: AuditLog;
  readonly mode: 'development' | 'production';
}

type TextBindings = Pick<
  Bindings,
  | 'ISSUERS'
  | 'ATTESTATION'
  | 'TICKET_KEY'
  | 'GRANT_KEY'
  | 'ZONES'
  | 'MODE'
  | 'BACK_OFFICES'
  | 'SERVICE_KEYS'
  | 'AUDIT_LOGS'
>;

const parsed = new WeakMap<TextBindings, Settings>();

/** `iss` and `aud` of tokens that the edge issues itself. */
export const GRANTS = { issuer: 'urn:auricle:grant', audience: 'auricle' } as const;

/** The edge believes its own short-lived tokens as it does those of any issuer: by their public key. */
function issuerOf({ kty, crv, x, y, kid }: JWK): Issuer {
  const key = { kty, crv, x, y, ...(kid !== undefined && { kid }) } as JWK;
  return { ...GRANTS, jwks: { keys: [key] }, algorithms: ['ES256'] };
}

/** The settings of this isolate. Throws on wrong ones: a front door that misreads its locks must not open. */
export function readSettings(env: TextBindings): Settings {
  const known = parsed.get(env);
  if (known) return known;
  const { ISSUERS, ATTESTATION, TICKET_KEY, GRANT_KEY, ZONES, MODE, BACK_OFFICES, SERVICE_KEYS, AUDIT_LOGS } = env;
  const texts = { ISSUERS, ATTESTATION, TICKET_KEY, GRANT_KEY, ZONES, MODE, BACK_OFFICES, SERVICE_KEYS, AUDIT_LOGS };
  const result = settings.safeParse(texts);
  if (!result.success) throw new Error(`settings: ${z.prettifyError(result.error)}`);
  const { data } = result;
  const { [HEADS]: auditHeads, ...auditLogs } = data.AUDIT_LOGS ?? {};
  const value: Settings = {
    issuers: [...data.ISSUERS, ...(data.GRANT_KEY ? [issuerOf(data.GRANT_KEY)] : [])],
    // Both must agree before anything self-issued is believed.
    attestation: { ...data.ATTESTATION, development: data.ATTESTATION.development && data.MODE === 'development' },
    ticketKey: data.TICKET_KEY,
    grantKey: data.GRANT_KEY,
    zones: data.ZONES,
    backOffices: new Map(Object.entries(data.BACK_OFFICES ?? {}).map(([zone, url]) => [zone, url.replace(/\/$/, '')])),
    serviceKeys: data.SERVICE_KEYS as JSONWebKeySet | undefined,
    auditLogs: new Map(Object.entries(auditLogs)),
    ...(auditHeads && { auditHeads }),
    mode: data.MODE,
  };
  parsed.set(env, value);
  return value;
}
