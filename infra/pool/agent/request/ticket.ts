import { createLocalJWKSet, errors, type JSONWebKeySet, jwtVerify } from 'jose';
import { z } from 'zod';
import { CLOCK_SKEW_S, describeOffset } from '../../../../shared/clock-offset.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { revisionDigest } from '../../../../shared/registry/revision.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { ENCAPSULATED_CHARACTERS, TICKET_S } from '../../../../shared/seal/limits.ts';
import { isSuite, type SuiteId } from '../../../../shared/seal/suites.ts';
import { classes } from '../../../../shared/tenant/claims.ts';
import { TOKEN_CHARACTERS } from '../../../../shared/tenant/limits.ts';

/** Life of the ticket of a sealed session: as long as a set-up may be used, rounded up. */
export const SESSION_TICKET_S = 601;
/** Largest work budget a ticket may name: far over what edges grant, and still within a timer's range. */
const TICKET_BUDGET_MS = 24 * 3_600_000;
/** Remembered request ids: over a thousand requests a second for a minute. */
const REPLAY_IDS_MAX = 65_536;

const digest = z.string().regex(/^[A-Za-z0-9_-]{43}$/);

/** Payload of the ticket of a stream (`shared/pool/PROTOCOL.md`). */
const payload = z.object({
  v: z.literal(1),
  jti: z.string().min(8).max(128),
  aud: z.string(),
  tenant: z.string().min(1).max(63),
  class: z.enum(classes),
  model: z.string().min(1).max(63),
  /** Revision of the model that serves the request. Edges of an earlier version name none. */
  revision: revisionDigest.optional(),
  /** SHA-256 of the encapsulated key. */
  enc: digest,
  /** SHA-256 of the attestation sealed to. */
  att: digest,
  suite: z.custom<SuiteId>((value) => typeof value === 'number' && isSuite(value)),
  iat: z.number().int(),
  exp: z.number().int(),
  deadlineMs: z.number().int().positive().max(TICKET_BUDGET_MS),
});

export type Ticket = z.infer<typeof payload>;

/** Payload of the ticket of a sealed session; each request carries its own facts. */
const sessionPayload = payload.pick({ jti: true, aud: true, att: true, suite: true, iat: true, exp: true }).extend({
  v: z.literal(2),
  /** The encapsulated key itself. */
  enc: z
    .string()
    .max(ENCAPSULATED_CHARACTERS)
    .regex(/^[A-Za-z0-9_-]+$/),
});

export type SessionTicket = z.infer<typeof sessionPayload>;

/** Facts of a request in a sealed session: the first message of its body. */
export const requestFacts = payload.pick({
  jti: true,
  tenant: true,
  class: true,
  model: true,
  revision: true,
  iat: true,
  deadlineMs: true,
});

/** Facts of a request or stream. */
export type Facts = Pick<Ticket, 'jti' | 'tenant' | 'class' | 'model' | 'revision' | 'deadlineMs'>;

const invalid = (detail: string) => no(refuse('ticket_invalid', undefined, `ticket: ${detail}`));

/** Verifies the ticket of a stream for this agent at `now` (ms since 1970). Does not look at replays. */
export function createTicketReader(agent: string, edgeKeys: JSONWebKeySet) {
  const verify = createVerifier(agent, edgeKeys);
  return (token: string, now: number): Promise<Result<Ticket>> => verify(token, payload, TICKET_S, now);
}

/** Returns a reader of tickets of sealed sessions. */
export function createSessionTicketReader(agent: string, edgeKeys: JSONWebKeySet) {
  const verify = createVerifier(agent, edgeKeys);
  return (token: string, now: number): Promise<Result<SessionTicket>> =>
    verify(token, sessionPayload, SESSION_TICKET_S, now);
}

function createVerifier(agent: string, edgeKeys: JSONWebKeySet) {
  const findKey = createLocalJWKSet(edgeKeys);
  return async <T extends { readonly iat: number; readonly exp: number }>(
    token: string,
    schema: z.ZodType<T>,
    longest: number,
    now: number,
  ): Promise<Result<T>> => {
    if (token.length > TOKEN_CHARACTERS) return invalid('too long');
    try {
      const { payload: claims } = await jwtVerify(token, findKey, {
        algorithms: ['ES256'],
        audience: agent,
        currentDate: new Date(now),
        clockTolerance: CLOCK_SKEW_S,
        requiredClaims: ['exp', 'iat', 'jti'],
      });
      const parsed = schema.safeParse(claims);
      if (!parsed.success) return invalid(parsed.error.issues.map(({ path }) => path.join('.')).join(', '));
      if (parsed.data.exp - parsed.data.iat > longest) return invalid('lives too long');
      // The signature's library looks at expiry only. One written ahead of time would be good for longer than its life.
      if (parsed.data.iat > now / 1_000 + CLOCK_SKEW_S) {
        return invalid(describeOffset("the agent's", now, parsed.data.iat * 1_000) ?? 'from the future');
      }
      return ok(parsed.data);
    } catch (error) {
      return invalid(error instanceof errors.JOSEError ? error.code : 'unreadable');
    }
  };
}

/**
 * Remembers request ids until their tickets have expired, so that none is served twice. Full of live ids it refuses
 * new ones: forgetting one early would open the door it is there to close.
 */
export function createReplayCache(capacity: number = REPLAY_IDS_MAX) {
  const until = new Map<string, number>();

  /** Ids come in nearly in order of expiry, so dead ones are at the front. */
  function forget(now: number) {
    for (const [id, expires] of until) {
      if (expires > now) break;
      until.delete(id);
    }
  }

  return {
    /** Takes note of a ticket's id; refuses one that was seen. */
    admit(ticket: Pick<Ticket, 'jti' | 'exp'>, now: number): Result<undefined> {
      forget(now);
      if (until.has(ticket.jti)) return no(refuse('ticket_replayed'));
      if (until.size >= capacity) return no(refuse('pool_busy', undefined, 'replay cache is full'));
      until.set(ticket.jti, (ticket.exp + CLOCK_SKEW_S) * 1_000);
      return ok(undefined);
    },
    size: () => until.size,
  };
}
