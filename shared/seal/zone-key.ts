import { calculateJwkThumbprint, type JWK } from 'jose';
import { z } from 'zod';
import type { SealPrivateKey } from './setup.ts';

const coordinate = z.string().regex(/^[A-Za-z0-9_-]{43}$/);

/**
 * The public half of a zone key, to which files are sealed; the private half goes to attested agents of the zone only
 * (zone-key-release.ts). The id is the thumbprint of the key (RFC 7638, SHA-256), so that an id names one key for ever.
 */
export const zoneKey = z.object({
  kid: coordinate,
  jwk: z.object({ kty: z.literal('EC'), crv: z.literal('P-256'), x: coordinate, y: coordinate }),
});
export type ZoneKey = z.infer<typeof zoneKey>;

/** The keys of zones, as settings have them: the first of a zone is sealed to, the others still open what is there. */
export const zoneKeys = z.record(z.string(), z.array(zoneKey).min(1).max(8));
export type ZoneKeys = z.infer<typeof zoneKeys>;

export const zoneKeyId = ({ kty, crv, x, y }: JsonWebKey): Promise<string> =>
  calculateJwkThumbprint({ kty, crv, x, y } as JWK);

const algorithm = { name: 'ECDH', namedCurve: 'P-256' };

/** The private half, to be used and never to leave this process again. Throws when it is no P-256 key pair. */
export async function importZoneKey({ kty, crv, x, y, d }: JsonWebKey): Promise<SealPrivateKey> {
  const jwk = { kty, crv, x, y } as JsonWebKey;
  return {
    publicKey: await crypto.subtle.importKey('jwk', jwk, algorithm, true, []),
    privateKey: await crypto.subtle.importKey('jwk', { ...jwk, d } as JsonWebKey, algorithm, false, ['deriveBits']),
  };
}

/** A new key of a zone, as the release authority keeps it. */
export async function generateZoneKey(): Promise<{ readonly zoneKey: ZoneKey; readonly privateJwk: JsonWebKey }> {
  const pair = (await crypto.subtle.generateKey(algorithm, true, ['deriveBits'])) as CryptoKeyPair;
  const { kty, crv, x, y, d } = await crypto.subtle.exportKey('jwk', pair.privateKey);
  const jwk = { kty, crv, x, y } as ZoneKey['jwk'];
  return { zoneKey: { kid: await zoneKeyId(jwk), jwk }, privateJwk: { ...jwk, d } as JsonWebKey };
}
