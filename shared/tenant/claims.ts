import { z } from 'zod';
import { tenantName } from '../names.ts';
import { refuse } from '../refusal.ts';
import { no, ok, type Result } from '../result.ts';

/** Days a tenant may keep the audio of finished uploads; the default is none. */
export const UPLOAD_KEEP_DAYS = 30;

/** Scopes of a token, one per family of routes. */
export const scopes = [
  'transcribe',
  // Live sound only: what short-lived tokens carry. `transcribe` includes it.
  'stream',
  'synthesize',
  'infer',
  'models',
  'uploads',
  'projects',
  'audit',
  // Erasing and holding what the audit log hides: other people's task than reading it.
  'compliance',
  'operate',
] as const;
export type Scope = (typeof scopes)[number];

/** Scopes that a short-lived token of the edge may have: live sound, and recordings where its request says so. */
export const grantScopes = ['stream', 'transcribe'] as const satisfies readonly Scope[];
export type GrantScope = (typeof grantScopes)[number];

/** Request classes, most urgent first. The position is the Triton priority (1 is the highest). */
export const classes = ['realtime', 'interactive', 'default', 'batch'] as const;
export type RequestClass = (typeof classes)[number];

export const isTenantName = (name: string): boolean => tenantName.safeParse(name).success;
const list = z.array(z.string().min(1).max(64)).max(128);
/** A list, or its members in one text with spaces between: some issuers write text only (Entra ID). */
const names = z.union([
  list,
  z
    .string()
    .max(1024)
    .transform((text) => text.split(' ').filter(Boolean))
    .pipe(list),
]);

/** Bounds of one token, besides those of its tenant. */
export const shareAllowance = z
  .object({
    requestsPerMinute: z.number().int().positive(),
    requestsAtOnce: z.number().int().positive(),
    audioSecondsPerDay: z.number().positive(),
  })
  .partial();
export type ShareAllowance = Pick<Claims['allowance'], keyof z.infer<typeof shareAllowance>>;

/**
 * Payload of an access token, after its signature, issuer, audience and times were checked. Scopes are in `scope` (RFC
 * 9068), or, in a token without it, in Entra ID's `scp` or `roles`, which no policy renames.
 */
export const accessToken = z.object({
  sub: z.string().max(256).optional(),
  jti: z.string().max(256).optional(),
  exp: z.number().int(),
  tenant: tenantName,
  scope: z.string().max(1024).optional(),
  scp: z.string().max(1024).optional(),
  roles: list.optional(),
  languages: names.prefault(['*']),
  zones: names.refine((zones) => zones.length > 0),
  priority: z.enum(classes).default('default'),
  sealing: z.enum(['edge', 'client']).default('edge'),
  audit: z.enum(['strict', 'buffered']).default('buffered'),
  mirror: z.enum(['allowed', 'forbidden']).optional(),
  visibility: z.enum(['tenant', 'subject']).optional(),
  sessionSeconds: z.number().int().positive().max(86_400).default(3_600),
  idleSeconds: z.number().int().positive().max(86_400).optional(),
  uploads: z.enum(['sealed', 'plain']).default('sealed'),
  keepDays: z.number().int().nonnegative().max(UPLOAD_KEEP_DAYS).default(0),
  allowance: z
    .object({
      requestsPerMinute: z.number().int().positive(),
      requestsAtOnce: z.number().int().positive(),
      audioSecondsPerDay: z.number().positive(),
      uploadsAtOnce: z.number().int().positive(),
      uploadBytesAtOnce: z.number().int().positive(),
    })
    .partial()
    .default({}),
  share: shareAllowance.optional(),
  /** Realtime session of a client secret, as its client configured it. */
  realtime: z.record(z.string(), z.unknown()).optional(),
});

export interface TokenShare {
  /** `jti` of the token. */
  readonly id: string;
  readonly allowance: ShareAllowance;
  /** Expiry of the token, ms since 1970: nothing is counted after it. */
  readonly until: number;
}

export interface Claims {
  readonly tenant: string;
  /** Holder of the token within the tenant; the audit log gets a commitment only. */
  readonly subject: string | undefined;
  readonly scopes: ReadonlySet<string>;
  /** BCP 47 tags the tenant may use; `*` means any. */
  readonly languages: readonly string[];
  /** Residency zones that may hold the tenant's audio. */
  readonly zones: readonly string[];
  /** The most urgent class the tenant may request. */
  readonly priority: RequestClass;
  readonly sealing: 'edge' | 'client';
  readonly audit: 'strict' | 'buffered';
  /** Revisions that are on trial get no copies of recordings. */
  readonly mirror?: 'forbidden';
  /** Uploads and projects of other subjects are unknown to this one. Absent: those of the tenant are visible. */
  readonly visibility?: 'subject';
  readonly sessionSeconds: number;
  /** Longest silence of a live client, seconds; the limit of its protocol applies as well. */
  readonly idleSeconds?: number;
  /** `plain`: files may also lie in storage as they are, encrypted by the store alone. */
  readonly uploads: 'sealed' | 'plain';
  /** Most days for which the audio of a finished upload may be kept. */
  readonly keepDays: number;
  readonly allowance: {
    readonly requestsPerMinute?: number;
    readonly requestsAtOnce?: number;
    readonly audioSecondsPerDay?: number;
    /** Files on their way, and their bytes. */
    readonly uploadsAtOnce?: number;
    readonly uploadBytesAtOnce?: number;
  };
  /** A smaller allowance of this token alone, counted besides that of the tenant. */
  readonly share?: TokenShare;
  readonly realtime?: Readonly<Record<string, unknown>>;
  /** The edge made the token itself from another one: it makes no further ones. */
  readonly granted?: boolean;
  /** Seconds since 1970 (RFC 7519 NumericDate). */
  readonly expires: number;
}

/** Reads the payload of a verified token. Claims of the wrong shape make the token invalid, they never default. */
export function readClaims(raw: unknown): Result<Claims> {
  const parsed = accessToken.safeParse(raw);
  if (!parsed.success) {
    const paths = parsed.error.issues.map((issue) => issue.path.join('.')).join(', ');
    return no(refuse('token_invalid', undefined, `claims: ${paths}`));
  }
  const { sub, scope: written, scp, roles, allowance, realtime, idleSeconds, mirror, exp, ...others } = parsed.data;
  const { visibility, jti, share, ...rest } = others;
  const scope = written ?? scp ?? roles?.join(' ');
  if (scope === undefined) return no(refuse('token_invalid', undefined, 'claims: scope'));
  if (share && !jti) return no(refuse('token_invalid', undefined, 'claims: jti'));
  if (visibility === 'subject' && !sub) return no(refuse('token_invalid', undefined, 'claims: sub'));
  return ok({
    ...rest,
    ...(realtime && { realtime }),
    ...(share && jti && { share: { id: jti, allowance: share as ShareAllowance, until: exp * 1_000 } }),
    ...(mirror === 'forbidden' && { mirror }),
    ...(visibility === 'subject' && { visibility }),
    ...(idleSeconds !== undefined && { idleSeconds }),
    subject: sub,
    expires: exp,
    scopes: new Set(scope.split(' ').filter(Boolean)),
    allowance: allowance as Claims['allowance'],
  });
}

/** Returns the only subject whose uploads and projects a token may see, or `undefined` for all of its tenant. */
export const ownerOf = ({ visibility, subject }: Pick<Claims, 'visibility' | 'subject'>): string | undefined =>
  visibility === 'subject' ? subject : undefined;

/** Returns the class a request runs in: the requested one, but never above the tenant's ceiling. */
export function clampClass(requested: string | undefined, ceiling: RequestClass): RequestClass {
  const wanted = classes.indexOf(requested as RequestClass);
  const top = classes.indexOf(ceiling);
  const fallback = Math.max(top, classes.indexOf('default'));
  return classes[wanted < 0 ? fallback : Math.max(wanted, top)] as RequestClass;
}
