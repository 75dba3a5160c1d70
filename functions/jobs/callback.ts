// Decides whether notices may go to an address. Validation of a request and delivery share this decision.
import { BlockList, isIP } from 'node:net';

/** Networks in the IANA registries of special-purpose addresses, including documentation and translation. */
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
/** The global unicast range; the rest is local, translated or unassigned. */
const unicast = new BlockList();
unicast.addSubnet('2000::', 3, 'ipv6');
for (const [net, prefix] of [
  // Protocols, Teredo (2001::/32) and documentation among them.
  ['2001::', 23],
  ['2001:db8::', 32],
  // 6to4 carries an IPv4 address, to which relays send.
  ['2002::', 16],
  ['2620:4f:8000::', 48],
  ['3fff::', 20],
] as const) {
  closed.addSubnet(net, prefix, 'ipv6');
}

/** Reports whether notices may go to an address. An IPv4-mapped address is judged as IPv4. */
export function isPublicAddress(address: string): boolean {
  const inside = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
  const version = isIP(inside);
  if (version === 4) return !closed.check(inside, 'ipv4');
  return version === 6 && unicast.check(inside, 'ipv6') && !closed.check(inside, 'ipv6');
}

/** Top-level names that no public resolver answers: RFC 6761, 6762, 7686, 8375, and ICANN's `internal`. */
const PRIVATE_NAMES = /(^|\.)(localhost|local|internal|invalid|test|example|onion|home\.arpa)$/;
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;
/** RFC 1035, 2.3.4. */
const NAME_CHARACTERS = 253;

/** The rule that `url` breaks, if notices can never be delivered there. `open`: plain HTTP and private hosts are fine. */
export function callbackProblem(url: string, open: boolean): string | undefined {
  if (!URL.canParse(url)) return 'it is not a URL';
  const { protocol, username, password, hostname, port } = new URL(url);
  if (protocol !== 'https:' && protocol !== 'http:') return 'it begins with https://';
  if (username !== '' || password !== '') return 'it holds no user name and no password';
  if (port === '0') return 'nothing listens on port 0';
  if (open) return undefined;
  if (protocol !== 'https:') return 'it begins with https://';
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  if (isIP(host) !== 0) return isPublicAddress(host) ? undefined : 'its address is not public';
  const labels = host.split('.');
  if (host.length > NAME_CHARACTERS || !labels.every((label) => LABEL.test(label))) return 'its host is no name';
  return labels.length < 2 || PRIVATE_NAMES.test(host) ? 'its host is not public' : undefined;
}
