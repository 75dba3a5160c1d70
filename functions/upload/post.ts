// One POST to an address that somebody else chose. It must not become a way into our own network: names are resolved
// here, addresses that are not public are refused, the connection goes to the address that was looked at, and a
// redirection is an answer like any other.
import { lookup as resolve } from 'node:dns';
import { request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { limits } from '../../shared/limits.ts';
import { LATE } from './post-places.ts';

/** What came of it: the status of the answer, or a word for why there is none. */
export type Posted = { readonly status: number } | { readonly failure: string };

export type Post = (url: string, headers: Record<string, string>, body: string) => Promise<Posted>;

/** What the IANA registries of special-purpose addresses list, documentation and translation included. */
const closed = new BlockList();
for (const [net, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Azure's own virtual address: agents of the platform answer there to every machine of a network.
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const) {
  closed.addSubnet(net, prefix, 'ipv4');
}
/** The only space that is given to anybody; the rest is local, translated, or nobody's. */
const unicast = new BlockList();
unicast.addSubnet('2000::', 3, 'ipv6');
for (const [net, prefix] of [
  // Protocols, Teredo (2001::/32) and documentation among them.
  ['2001::', 23],
  ['2001:db8::', 32],
  // 6to4 carries an IPv4 address, and whoever takes it on sends it there.
  ['2002::', 16],
  ['2620:4f:8000::', 48],
  ['3fff::', 20],
] as const) {
  closed.addSubnet(net, prefix, 'ipv6');
}

/** Whether everybody may be told to call it. An IPv4 address in IPv6 clothes is what it is inside. */
export function isPublicAddress(address: string): boolean {
  const inside = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
  const version = isIP(inside);
  if (version === 4) return !closed.check(inside, 'ipv4');
  return version === 6 && unicast.check(inside, 'ipv6') && !closed.check(inside, 'ipv6');
}

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
      const host = target.hostname.replace(/^\[|\]$/g, '');
      const tls = target.protocol === 'https:';
      if (!open && !tls) return settle({ failure: 'not https' });
      // A literal address is never looked up.
      if (!open && isIP(host) && !isPublicAddress(host)) return settle({ failure: 'ADDRESS_CLOSED' });
      const request = (tls ? requestTls : requestPlain)(target, {
        method: 'POST',
        headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
        signal: AbortSignal.timeout(limits.webhookMs.value),
        ...(!open && { lookup: publicLookup }),
        agent: false,
      });
      request.on('response', (response) => {
        settle({ status: response.statusCode ?? 0 });
        // The status is all that counts.
        response.destroy();
      });
      request.on('error', (error: NodeJS.ErrnoException) =>
        settle({ failure: error.name === 'AbortError' ? LATE : (error.code ?? error.name) }),
      );
      request.end(body);
    });
}
