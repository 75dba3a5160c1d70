import { rateLimitNames } from './rate-limit.ts';

/** Time a browser may cache the answer to a preflight; Chromium caps it at as much. */
const PREFLIGHT_S = 7_200;

/**
 * Browsers call from anywhere: the token is in a header, never in a cookie, so another site gains nothing by a
 * cross-origin request. The lists are what official browser clients send and read.
 */
const ALLOW_HEADERS = [
  'authorization',
  'content-type',
  'openai-beta',
  'openai-organization',
  'openai-project',
  ...['arch', 'lang', 'os', 'package-version', 'retry-count', 'runtime', 'runtime-version', 'timeout'].map(
    (name) => `x-stainless-${name}`,
  ),
  'x-auricle-model',
  'x-auricle-language',
  'x-auricle-class',
  'x-auricle-sequence',
  'x-auricle-session',
  'x-auricle-upload',
  'idempotency-key',
  'inference-header-content-length',
  'x-deepgram-session-id',
  ...['language', 'runtime', 'runtime-version', 'sdk-name', 'sdk-version'].map((name) => `x-fern-${name}`),
].join(', ');

const EXPOSE_HEADERS = [
  ...['x-request-id', 'retry-after', 'retry-after-ms', 'x-should-retry', 'www-authenticate', 'allow'],
  ...['inference-header-content-length', 'dg-request-id', 'dg-error', 'x-auricle-model'],
  ...['x-auricle-degraded', 'cache-status'],
  ...rateLimitNames,
].join(', ');

/** Answer to a preflight. Headers a future client adds are echoed when they look like header names. */
export function answerPreflight(request: Request, allow: readonly string[]): Response {
  const requested = request.headers.get('access-control-request-headers') ?? '';
  const extra = requested
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => /^x-stainless-[a-z-]{1,40}$/.test(name) && !ALLOW_HEADERS.includes(name));
  return new Response(null, {
    status: 204,
    headers: {
      'access-control-allow-methods': allow.join(', '),
      'access-control-allow-headers': [ALLOW_HEADERS, ...extra].join(', '),
      'access-control-max-age': String(PREFLIGHT_S),
    },
  });
}

export function setCors(headers: Headers): void {
  headers.set('access-control-allow-origin', '*');
  headers.set('access-control-expose-headers', EXPOSE_HEADERS);
}
