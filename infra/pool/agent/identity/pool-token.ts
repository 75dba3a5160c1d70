// The pool token: from a file that another party renews, or from an identity provider by OAuth 2.0 client credentials
// (RFC 6749 §4.4) with a secret or a federated token of the platform (RFC 7523 §2.2).
import { readFileSync } from 'node:fs';
import { decodeJwt } from 'jose';
import { z } from 'zod';
import type { Settings } from '../settings/settings.ts';
import type { Log } from '../telemetry/log.ts';
import { keepRenewed } from './keep-renewed.ts';

/** Longest answer of a token endpoint; a slower one is requested again. */
const TOKEN_MS = 10_000;
const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

export type PoolTokenSettings = Settings['poolToken'];
export type ClientSettings = Extract<PoolTokenSettings, { kind: 'client' }>;

export interface PoolToken {
  /** Resolves when there is a token. */
  first(): Promise<void>;
  /** Returns the newest token. Throws before the first. */
  read(): string;
  stop(): void;
}

interface PoolTokenOptions {
  readonly now: () => number;
  readonly log: Log;
}

/** Reads a file that may be replaced at any time. */
const readText = (file: string): string => readFileSync(file, 'utf8').trim();

export function openPoolToken(settings: PoolTokenSettings, { now, log }: PoolTokenOptions): PoolToken {
  if (settings.kind === 'file') {
    return { first: async () => {}, read: () => readText(settings.file), stop() {} };
  }
  let current: string | undefined;
  const { first, stop } = keepRenewed({
    async renew() {
      const { token, expires } = await requestToken(settings, now());
      current = token;
      return expires;
    },
    now,
    onRenewed: () => {},
    onFailed: (error) => log('token-failed', { reason: describeFailure(error) }),
  });
  return {
    first,
    stop,
    read() {
      if (current === undefined) throw new Error('there is no pool token yet');
      return current;
    },
  };
}

/** Refusal of a token endpoint: a status, and the code of RFC 6749 §5.2 if it gives one. */
class TokenRefused extends Error {}

const describeFailure = (error: unknown): string =>
  error instanceof TokenRefused ? error.message : error instanceof Error ? error.name : 'unknown';

const answered = z.object({
  access_token: z.string().min(1),
  token_type: z.string().regex(/^bearer$/i),
  /** Seconds; some providers write them as text. Absent, the token says when it ends. */
  expires_in: z.coerce.number().positive().optional(),
});
/** Codes only: descriptions may quote the request. */
const refused = z.object({ error: z.string().regex(/^[a-z_]{1,40}$/) });

/** Returns a token and its end, ms since 1970. Rejects when the provider refuses or does not answer. */
async function requestToken(settings: ClientSettings, now: number): Promise<{ token: string; expires: number }> {
  const response = await fetch(settings.url, {
    method: 'POST',
    headers: { accept: 'application/json' },
    body: bodyOf(settings),
    // The body holds a secret, which goes to the configured address only.
    redirect: 'error',
    signal: AbortSignal.timeout(TOKEN_MS),
  });
  const body: unknown = await response.json().catch(() => undefined);
  if (!response.ok) {
    const code = refused.safeParse(body).data?.error;
    throw new TokenRefused([response.status, ...(code === undefined ? [] : [code])].join(' '));
  }
  const { access_token: token, expires_in: seconds } = answered.parse(body);
  const expires = seconds === undefined ? z.number().parse(decodeJwt(token).exp) * 1_000 : now + seconds * 1_000;
  return { token, expires };
}

function bodyOf({ client, scope, audience, credential }: ClientSettings): URLSearchParams {
  const secret = readText(credential.file);
  return new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: client,
    ...(scope !== undefined && { scope }),
    ...(audience !== undefined && { audience }),
    ...(credential.kind === 'secret'
      ? { client_secret: secret }
      : { client_assertion_type: JWT_BEARER, client_assertion: secret }),
  });
}
