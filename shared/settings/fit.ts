// Production requirements on one value. Each function returns problems and never quotes the value.
import type { JSONWebKeySet, JWK } from 'jose';
import { fromBase64 } from '../base64.ts';
import type { AttestationPolicy } from '../seal/attestation-policy.ts';
import type { Problem } from './problem.ts';

/** Returns why production must not call `url`: what it carries is for the other side only. */
export function urlProblems(url: string | undefined): readonly string[] {
  if (url === undefined) return [];
  const { protocol, hostname } = new URL(url);
  return [
    ...(protocol === 'https:' ? [] : ['must be https']),
    ...(isLoopback(hostname) ? ['must not name this machine'] : []),
  ];
}

export const isLoopback = (hostname: string): boolean =>
  /^(localhost|.*\.localhost|127(\.\d+){3}|0\.0\.0\.0|\[::1?\])$/i.test(hostname);

/** Account of every copy of the storage emulator; its key is public. */
const EMULATOR = /UseDevelopmentStorage\s*=\s*true|devstoreaccount1/i;

/** Returns why a storage connection string is unfit: it leads to an emulator, to this machine or over plain HTTP. */
export function storageProblems(connection: string | undefined): readonly string[] {
  if (connection === undefined) return [];
  const parts = connection.split(';').map((part) => part.slice(part.indexOf('=') + 1).trim());
  const urls = parts.filter((part) => /^https?:\/\//i.test(part) && URL.canParse(part));
  const plain = /DefaultEndpointsProtocol\s*=\s*http\s*(;|$)/i.test(connection);
  return distinct([
    ...(EMULATOR.test(connection) ? ['names the development storage'] : []),
    ...(plain ? ['must be https'] : []),
    ...urls.flatMap(urlProblems),
  ]);
}

/** Bits of an RSA modulus below which RFC 7518 §3.3 forbids its use. */
const RSA_BITS_MIN = 2_048;
const COORDINATE_BYTES: Readonly<Record<string, number>> = {
  'P-256': 32,
  'P-384': 48,
  'P-521': 66,
  Ed25519: 32,
  X25519: 32,
};

const sizeOf = (base64url: unknown): number =>
  typeof base64url === 'string' ? Math.floor((base64url.length * 3) / 4) : 0;

/** Returns why a public key is unfit to verify with. */
function publicKeyProblems(key: JWK): readonly string[] {
  if (key.d !== undefined || key.k !== undefined) return ['holds a private or shared key'];
  return sizeProblems(key);
}

/** Returns why a private key is unfit to sign ES256 with. */
export function signingKeyProblems(key: JWK | undefined): readonly string[] {
  if (key === undefined) return [];
  if (key.kty !== 'EC' || key.crv !== 'P-256') return ['must be a P-256 key'];
  return [
    ...sizeProblems(key),
    ...(sizeOf(key.d) === COORDINATE_BYTES['P-256'] ? [] : ['has a private part of the wrong length']),
    ...(key.kid ? [] : ['needs a kid']),
  ];
}

function sizeProblems({ kty, crv = '', x, y, n }: JWK): readonly string[] {
  if (kty === 'RSA') return sizeOf(n) * 8 >= RSA_BITS_MIN ? [] : [`has an RSA key of less than ${RSA_BITS_MIN} bits`];
  const bytes = COORDINATE_BYTES[crv];
  if (bytes === undefined) return ['has a key of a type that is not supported'];
  const coordinates = kty === 'EC' ? [x, y] : [x];
  return coordinates.every((one) => sizeOf(one) === bytes) ? [] : [`has a ${crv} key of the wrong length`];
}

export const keySetProblems = (set: JSONWebKeySet | undefined): readonly string[] =>
  distinct((set?.keys ?? []).flatMap(publicKeyProblems));

/** Returns the keys that an attestation policy names itself, without those at an address. */
export const attestationKeys = (policy: AttestationPolicy | undefined): JWK[] =>
  (policy?.issuers ?? []).flatMap(({ jwks }) => ('keys' in jwks ? jwks.keys : []));

/** Returns each problem once. */
export const distinct = (problems: readonly string[]): readonly string[] => [...new Set(problems)];

const SECRET_BYTES_MIN = 32;
/** 32 random bytes hold about 30 distinct values; one key in 10^13 holds fewer than 16. */
const DISTINCT_BYTES_MIN = 16;

/** Returns why a shared secret in base64 is unfit. */
export function secretProblems(base64: string | undefined): readonly string[] {
  if (base64 === undefined) return [];
  const bytes = fromBase64(base64);
  if (bytes === undefined) return ['is not base64'];
  if (bytes.length < SECRET_BYTES_MIN) return [`has less than ${SECRET_BYTES_MIN} bytes`];
  return new Set(bytes).size < DISTINCT_BYTES_MIN ? ['is not random'] : [];
}

/** Returns the members that identify a public key (RFC 7638 §3.2). */
export const keyIdentity = ({ kty, crv, x, n }: JWK): string => JSON.stringify([kty, crv, x ?? n]);

/** Returns every setting that has a key of an earlier one: who holds a key for one purpose must not serve another. */
export function equalKeys(purposes: readonly (readonly [setting: string, identities: readonly string[]])[]): Problem[] {
  const owners = new Map<string, string>();
  return purposes.flatMap(([setting, identities]) => {
    const others = new Set(identities.map((one) => owners.get(one)).filter((one) => one !== undefined));
    for (const one of identities) if (!owners.has(one)) owners.set(one, setting);
    others.delete(setting);
    return [...others].map((other) => ({ setting, problem: `has a key of ${other}: each purpose needs its own` }));
  });
}
