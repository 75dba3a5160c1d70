import type { JWK } from 'jose';
import { z } from 'zod';
import { type AttestationPolicy, attestationPolicy } from '../shared/seal/attestation-policy.ts';
import type { Roster } from './pool/roster.ts';
import type { Gate } from './tenant/gate.ts';

/** Bindings of the Worker, as the runtime hands them over. This file alone reads the text ones. */
export interface Bindings {
  readonly GATE: ObjectNamespace<Pick<Gate, 'apply' | 'outbox'>>;
  readonly ROSTER: ObjectNamespace<Pick<Roster, 'snapshot' | 'outbox' | 'record'>>;
  readonly ISSUERS: string;
  readonly ATTESTATION: string;
  readonly TICKET_KEY: string;
  readonly ZONES: string;
  readonly MODE: string;
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

/** Text bindings that hold JSON. */
const json = <T extends z.ZodType>(schema: T) =>
  z
    .string()
    .transform((text, context): unknown => {
      try {
        return JSON.parse(text);
      } catch {
        context.addIssue('is not JSON');
        return z.NEVER;
      }
    })
    .pipe(schema);

const settings = z.object({
  /** Who issues access tokens, and how they are checked. */
  ISSUERS: json(z.array(issuer).min(1)),
  /** Who attests agents, and what must be attested. */
  ATTESTATION: json(attestationPolicy),
  /** Private ES256 key, JWK with `kid`, that signs tickets for agents. A secret. */
  TICKET_KEY: json(jwk.refine((key) => typeof key.d === 'string' && key.kty === 'EC', 'must be a private EC key')),
  /** Residency zones served here; each has a roster of its own. */
  ZONES: json(z.array(z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/)).min(1)),
  /** `development` also trusts self-issued attestations and plain-HTTP agents. */
  MODE: z.enum(['development', 'production']),
});

export type Issuer = z.infer<typeof issuer>;

export interface Settings {
  readonly issuers: readonly Issuer[];
  readonly attestation: AttestationPolicy;
  readonly ticketKey: JWK;
  readonly zones: readonly string[];
  readonly mode: 'development' | 'production';
}

type TextBindings = Pick<Bindings, 'ISSUERS' | 'ATTESTATION' | 'TICKET_KEY' | 'ZONES' | 'MODE'>;

const parsed = new WeakMap<TextBindings, Settings>();

/** The settings of this isolate. Throws on wrong ones: a front door that misreads its locks must not open. */
export function readSettings(env: TextBindings): Settings {
  const known = parsed.get(env);
  if (known) return known;
  const { ISSUERS, ATTESTATION, TICKET_KEY, ZONES, MODE } = env;
  const result = settings.safeParse({ ISSUERS, ATTESTATION, TICKET_KEY, ZONES, MODE });
  if (!result.success) throw new Error(`settings: ${z.prettifyError(result.error)}`);
  const { data } = result;
  const value: Settings = {
    issuers: data.ISSUERS,
    // Both must agree before anything self-issued is believed.
    attestation: { ...data.ATTESTATION, development: data.ATTESTATION.development && data.MODE === 'development' },
    ticketKey: data.TICKET_KEY,
    zones: data.ZONES,
    mode: data.MODE,
  };
  parsed.set(env, value);
  return value;
}
