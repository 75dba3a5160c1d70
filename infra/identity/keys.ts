// Keys of the local stack: made once, stored in the state folder, readable by their owner only.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, type JWK } from 'jose';

export type KeyFile = {
  /** Private key, JWK. Parts get the path, never the contents, in their environment. */
  privateFile: string;
  /** `{"keys":[…]}` with the public half only. */
  publicFile: string;
  privateKey: JWK;
  jwks: { keys: JWK[] };
};

export async function createKey(folder: string, name: string, alg: 'ES256' | 'RS256'): Promise<KeyFile> {
  const privateFile = path.join(folder, `${name}.private.jwk.json`);
  const publicFile = path.join(folder, `${name}.jwks.json`);
  if (!existsSync(privateFile)) {
    const pair = await generateKeyPair(alg, { extractable: true });
    const jwk = await exportJWK(pair.privateKey);
    writePrivate(privateFile, JSON.stringify({ ...jwk, kid: await calculateJwkThumbprint(jwk), alg, use: 'sig' }));
  }
  const privateKey: JWK = JSON.parse(readFileSync(privateFile, 'utf8'));
  const jwks = { keys: [publicHalf(privateKey)] };
  writePrivate(publicFile, `${JSON.stringify(jwks, undefined, 2)}\n`);
  return { privateFile, publicFile, privateKey, jwks };
}

/** Allow-list of public members, so that an unknown private one is never published. */
const PUBLIC_MEMBERS = ['kty', 'crv', 'x', 'y', 'n', 'e', 'kid', 'alg', 'use'] as const;

export function publicHalf(jwk: JWK): JWK {
  const half: JWK = { kty: jwk.kty as string };
  for (const member of PUBLIC_MEMBERS) {
    const value = jwk[member];
    if (value !== undefined) half[member] = value;
  }
  return half;
}

/** Writes a file atomically, never readable by other users. */
export function writePrivate(file: string, content: string): void {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}.new`;
  writeFileSync(draft, content, { mode: 0o600 });
  renameSync(draft, file);
}
