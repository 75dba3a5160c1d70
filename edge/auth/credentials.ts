/** Credentials of a live client, from any place where its protocol allows them. */
export interface Credentials {
  /** Value in the form of the `authorization` header; absent without credentials. */
  readonly authorization: string | undefined;
  /**
   * Sub-protocol of the answer (browsers hang up without one): one that the client offered, never a
   * credential.
   */
  readonly protocol: string | undefined;
  /** The client is a browser that uses the retired shape of OpenAI's interface. */
  readonly beta: boolean;
}

/** Prefixes of key sub-protocols: OpenAI's, and that of NVIDIA's client of the retired shape. */
const KEYS = ['openai-insecure-api-key.', 'realtime-token.'] as const;
const OPENAI_BETA = 'openai-beta.realtime-v1';

/**
 * Reads credentials: headers first; browsers cannot set any and put the token into a sub-protocol: OpenAI's
 * `realtime, openai-insecure-api-key.<token>`, Deepgram's `token,<token>` or `bearer,<token>`. The address is
 * never read: every hop logs it.
 */
export function readCredentials(headers: Headers): Credentials {
  const offered = readOffered(headers);
  const header = headers.get('authorization') ?? undefined;
  const beta = offered.includes(OPENAI_BETA);
  const key = KEYS.map((prefix) => behind(offered, prefix)).find((one) => one !== undefined);
  const scheme = offered.find((name) => /^(token|bearer)$/i.test(name));
  const token = key ?? (scheme && after(offered, scheme));
  const protocol = offered.includes('realtime') ? 'realtime' : scheme;
  return { authorization: header ?? (token && `Bearer ${token}`), protocol, beta };
}

/** Sub-protocols a client offers, in its order (RFC 6455 §4.1). */
const readOffered = (headers: Headers): string[] =>
  (headers.get('sec-websocket-protocol') ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

const behind = (offered: readonly string[], prefix: string): string | undefined =>
  offered.find((name) => name.startsWith(prefix))?.slice(prefix.length);

function after(offered: readonly string[], name: string): string | undefined {
  const at = offered.indexOf(name);
  return at < 0 ? undefined : offered[at + 1];
}
