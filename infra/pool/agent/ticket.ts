import { createLocalJWKSet, errors, type JSONWebKeySet, jwtVerify } from 'jose';
import { z } from 'zod';
import { limits } from '../../../shared/limits.ts';
import { refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import { isSuite, type SuiteId } from '../../../shared/seal/suites.ts';
import { classes } from '../../../shared/tenant/claims.ts';

const digest = z.string().regex(/^[A-Za-z0-9_-]{43}$/);

/** Payload of the edge's ticket (`shared/pool/PROTOCOL.md`). */
const payload = z.object({
  v: z.literal(1),
  jti: z.string().min(8).max(128),
  aud: z.string(),
  tenant: z.string().min(1).max(63),
  class: z.enum(classes),
  model: z.string().min(1).max(63),
  /** SHA-256 of the encapsulated key. */
  enc: digest,
  /** SHA-256 of the attestation sealed to. */
  att: digest,
  suite: z.custom<SuiteId>((value) => typeof value === 'number' && isSuite(value)),
  iat: z.number().int(),
  exp: z.number().int(),
  deadlineMs: z.number().int().positive().max(limits.ticketBudgetMs.value),
});

export type Ticket = z.infer<typeof payload>;

const invalid = (detail: string) => no(refuse('ticket_invalid', undefined, `ticket: ${detail}`));

/** Verifies a ticket for this agent at `now` (ms since 1970). Does not look at replays. */
export function createTicketReader(agent: string, edgeKeys: JSONWebKeySet) {
  const findKey = createLocalJWKSet(edgeKeys);
  return async (token: string, now: number): Promise<Result<Ticket>> => {
    if (token.length > limits.tokenCharacters.value) return invalid('too long');
    try {
      const { payload: claims } = await jwtVerify(token, findKey, {
        algorithms: ['ES256'],
        audience: agent,
        currentDate: new Date(now),
        clockTolerance: limits.clockSkewSeconds.value,
        requiredClaims: ['exp', 'iat', 'jti'],
      });
      const parsed = payload.safeParse(claims);
      if (!parsed.success) return invalid(parsed.error.issues.map(({ path }) => path.join('.')).join(', '));
      if (parsed.data.exp - parsed.data.iat > limits.ticketSeconds.value) return invalid('lives too long');
      // The signature's library looks at expiry only. One written ahead of time would be good for longer than its life.
      if (parsed.data.iat > now / 1_000 + limits.clockSkewSeconds.value) return invalid('from the future');
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
export function createReplayCache(capacity: number = limits.replayEntries.value) {
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
      until.set(ticket.jti, (ticket.exp + limits.clockSkewSeconds.value) * 1_000);
      return ok(undefined);
    },
    size: () => until.size,
  };
}
