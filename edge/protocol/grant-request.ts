import { z } from 'zod';
import { type GrantScope, grantScopes, type ShareAllowance } from '../../shared/tenant/claims.ts';
import type { GrantRequest } from '../auth/grant.ts';
import { GRANT_S } from '../auth/grant.ts';

/** Longest life that a client secret may be requested for, as with OpenAI; it gets at most GRANT_S. */
const CLIENT_SECRET_S = 7_200;

const seconds = (least: number, most: number, usual: number) => {
  const rule = `must be an integer from ${least} to ${most}`;
  return z
    .int(rule)
    .min(least, rule)
    .max(most, rule)
    .nullish()
    .transform((value) => value ?? usual);
};

const SCOPE_LIST = new RegExp(`^(?:${grantScopes.join('|')})(?: (?:${grantScopes.join('|')}))*$`);
const isGrantScope = (scope: string): scope is GrantScope => grantScopes.some((one) => one === scope);
const COUNT_RULE = 'must be a whole number above 0';
const SECONDS_RULE = 'must be a number above 0';
const SCOPE_RULE = `must be ${grantScopes.join(' or ')}, or both with a space between`;

/** Our members beside those of OpenAI and Deepgram, which narrow the token. */
const narrowing = {
  /** Scopes of the token: live sound (`stream`), and recordings (`transcribe`, which includes it). */
  scope: z.string(SCOPE_RULE).max(100, SCOPE_RULE).regex(SCOPE_LIST, SCOPE_RULE).default('stream'),
  /** Subject of the token: the person at the device. By default that of the caller. */
  sub: z.string().min(1).max(256).optional(),
  /** Bounds of the token alone, at most those of the caller. */
  allowance: z
    .strictObject({
      requests_per_minute: z.int(COUNT_RULE).positive(COUNT_RULE),
      requests_at_once: z.int(COUNT_RULE).positive(COUNT_RULE),
      audio_seconds_per_day: z.number(SECONDS_RULE).positive(SECONDS_RULE),
    })
    .partial()
    .optional(),
};

/** `POST /v1/auth/grant`, as Deepgram's clients send it. An unknown member is refused: it may have been meant to narrow. */
export const grantBody = z.strictObject({ ttl_seconds: seconds(1, GRANT_S, 30), ...narrowing });

/** `POST /v1/realtime/client_secrets`, as OpenAI's clients send it. Only `session` may have unknown members. */
export const clientSecretBody = z.strictObject({
  expires_after: z
    .strictObject({
      anchor: z.literal('created_at', 'must be "created_at"').default('created_at'),
      seconds: seconds(10, CLIENT_SECRET_S, 600),
    })
    .default({ anchor: 'created_at', seconds: 600 }),
  session: z.record(z.string(), z.unknown()).default({}),
  ...narrowing,
});

const narrowingBody = z.object(narrowing);

/** Returns the grant that a token request narrows to, without its lifetime. */
export function narrowed({ scope, sub, allowance }: z.output<typeof narrowingBody>): Omit<GrantRequest, 'seconds'> {
  const own = allowance && {
    requestsPerMinute: allowance.requests_per_minute,
    requestsAtOnce: allowance.requests_at_once,
    audioSecondsPerDay: allowance.audio_seconds_per_day,
  };
  const scopes = [...new Set(scope.split(' ').filter(isGrantScope))];
  return { scopes, subject: sub, allowance: own as ShareAllowance | undefined };
}
