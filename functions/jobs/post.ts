// Posts to an address that a tenant chose, never into our own network: it resolves the name, refuses
// addresses that are not public, connects to the address it checked, and does not follow redirects.
import { lookup as resolve } from 'node:dns';
import { request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import type { LookupFunction } from 'node:net';
import { callbackProblem, isPublicAddress } from './callback.ts';

/** Longest call of a webhook, which has only to store the notice; a slower one is retried. */
const WEBHOOK_MS = 5_000;

/** The status of the answer, or a word for its absence. */
export type Posted = { readonly status: number } | { readonly failure: string };

export type Post = (url: string, headers: Record<string, string>, body: string) => Promise<Posted>;

/** Resolves a name and refuses it when any of its addresses is not public. */
const publicLookup: LookupFunction = (name, options, callback) => {
  resolve(name, { all: true, family: options.family ?? 0 }, (error, addresses) => {
    const [first] = addresses ?? [];
    if (error) return callback(error, '', 0);
    if (!first || !addresses.every(({ address }) => isPublicAddress(address)))
      return callback(Object.assign(new Error('not a public address'), { code: 'ADDRESS_CLOSED' }), '', 0);
    // Node asks for all of them when it may try several.
    if (options.all) return callback(null, addresses as never, 0);
    return callback(null, first.address, first.family);
  });
};

/** `open` posts anywhere, over plain HTTP too: for the local stack. */
export function createPost(open: boolean): Post {
  return (url, headers, body) =>
    new Promise((settle) => {
      const target = new URL(url);
      const tls = target.protocol === 'https:';
      // A literal address is never looked up.
      const problem = callbackProblem(url, open);
      if (problem !== undefined) return settle({ failure: problem });
      const request = (tls ? requestTls : requestPlain)(target, {
        method: 'POST',
        headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
        signal: AbortSignal.timeout(WEBHOOK_MS),
        ...(!open && { lookup: publicLookup }),
        agent: false,
      });
      request.on('response', (response) => {
        settle({ status: response.statusCode ?? 0 });
        // The status is all that counts.
        response.destroy();
      });
      request.on('error', (error: NodeJS.ErrnoException) =>
        settle({ failure: error.name === 'AbortError' ? TIMED_OUT : (error.code ?? error.name) }),
      );
      request.end(body);
    });
}
/** The word for no answer in time. */
export const TIMED_OUT = 'late';
