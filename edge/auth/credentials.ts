/** Credentials of a live client, from any place where its protocol allows them. */
export interface Credentials {
  /** Value in the form of the `authorization` header; absent without credentials. */
  readonly authorization: string | undefined;
  /**
   * Sub-protocol of the answer (browsers hang up without one): one that the client offered, never a
   * credential.
   */
  readonly protocol: string | undefined;
}

/** Prefix of OpenAI's sub-protocol with the key. */
const KEY = 'openai-insecure-api-key.';

/**
 * Reads credentials: headers first; browsers cannot set any and put the token into a sub-protocol: OpenAI's
 * `realtime, openai-insecure-api-key.<token>`, Deepgram's `token,<token>` or `bearer,<token>`. The address is
 * never read: every hop logs it.
 */
export function readCredentials(headers: Headers): Credentials {
  const offered = readOffered(headers);
  const header = headers.get('authorization') ?? undefined;
  const key = offered.find((name) => name.startsWith(KEY))?.slice(KEY.length);
  const scheme = offered.find((name) => /^(token|bearer)$/i.test(name));
  const token = key ?? (scheme && after(offered, scheme));
  const protocol = offered.includes('realtime') ? 'realtime' : scheme;
  return { authorization: header ?? (token && `Bearer ${token}`), protocol };
}

/** Sub-protocols a client offers, in its order (RFC 6455 §4.1). */
const readOffered = (headers: Headers): string[] =>
  (headers.get('sec-websocket-protocol') ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

function after(offered: readonly string[], name: string): string | undefined {
  const at = offered.indexOf(name);
  return at < 0 ? undefined : offered[at + 1];
}
