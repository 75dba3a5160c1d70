import type { Row } from './row.ts';

/** Who calls, and what they may do. */
export const callerRefusals = {
  token_missing: {
    status: 401,
    close: 4401,
    type: 'authentication_error',
    retry: 'never',
    text: 'No token was sent. Send "Authorization: Bearer <token>".',
  },
  token_invalid: {
    status: 401,
    close: 4401,
    type: 'authentication_error',
    retry: 'never',
    text: 'The token is not valid here.',
  },
  token_expired: {
    status: 401,
    close: 4401,
    type: 'authentication_error',
    retry: 'never',
    text: 'The token has expired.',
  },
  audience_wrong: {
    status: 401,
    close: 4401,
    type: 'authentication_error',
    retry: 'never',
    text: 'The token was issued for another audience.',
  },
  identity_unavailable: {
    status: 503,
    close: 4503,
    type: 'server_error',
    retry: 'soon',
    text: 'The token cannot be checked at the moment.',
  },
  grant_closed: {
    status: 501,
    close: 4403,
    type: 'invalid_request_error',
    retry: 'never',
    text: 'Short-lived tokens are not issued here.',
  },
  // What may you do
  scope_missing: {
    status: 403,
    close: 4403,
    type: 'permission_error',
    retry: 'never',
    text: 'The token lacks the scope "{scope}".',
  },
  language_forbidden: {
    status: 403,
    close: 4403,
    type: 'permission_error',
    retry: 'never',
    text: 'The token does not allow the language "{language}".',
  },
  residency_mismatch: {
    status: 403,
    close: 4403,
    type: 'permission_error',
    retry: 'never',
    text: 'The model is not served in a region the token allows.',
  },
  zone_unserved: {
    status: 403,
    close: 4403,
    type: 'permission_error',
    retry: 'never',
    text: 'The zone "{zone}" is not served here.',
  },
  sealing_required: {
    status: 403,
    close: 4403,
    type: 'permission_error',
    retry: 'never',
    text: 'The token demands content sealed by the client, and this would pass the edge in the clear.',
  },
  allowance_requests: {
    status: 429,
    close: 4429,
    type: 'rate_limit_error',
    retry: 'soon',
    text: 'Too many requests in this minute: {limit} are allowed.',
  },
  allowance_concurrent: {
    status: 429,
    close: 4429,
    type: 'rate_limit_error',
    retry: 'soon',
    text: 'Too many requests at once: {limit} are allowed.',
  },
  allowance_seconds: {
    status: 429,
    close: 4429,
    type: 'rate_limit_error',
    retry: 'later',
    text: "Today's allowance of {limit} seconds of audio is used up.",
  },
} as const satisfies Record<string, Row>;
