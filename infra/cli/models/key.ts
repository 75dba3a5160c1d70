// Keys that models are signed with: PEM files of P-256 or SM2, as `openssl ecparam -genkey` and `openssl pkey` write them.
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { openP256Key, toDer } from '../../../shared/audit/ecdsa.ts';
import { openSm2Key, type SigningKey } from '../../../shared/registry/signature-key.ts';
import type { Arguments } from '../options.ts';

export const NO_KEY = 'missing key: --key FILE, or --as NAME';

/** The file that is named, or that of a signer of the local stack. */
export const keyFileOf = ({ key, as, state }: Pick<Arguments, 'key' | 'as' | 'state'>): string | undefined =>
  key ?? (as === undefined ? undefined : path.join(state, 'identity', 'signers', `${path.basename(as)}.pem`));

const bytesOf = (pem: string): Uint8Array => {
  const base64 = /-----BEGIN [A-Z ]+-----([^-]+)-----END/.exec(
    pem.replace(/-----BEGIN EC PARAM[^-]+-----[^-]+-----END[^-]+-----/, ''),
  )?.[1];
  return new Uint8Array(Buffer.from(base64 ?? '', 'base64'));
};

/** The curve of SM2, as DER names it: 1.2.156.10197.1.301. */
const SM2_OID = '06082a811ccf5501822d';
/** Bytes before the number in an ECPrivateKey (RFC 5915): version 1, an octet string of 32 bytes. */
const NUMBER = '0201010420';

export const noKeyIn = (file: string): string => `${file} holds no private key of P-256 or SM2`;

/** `undefined` when there is no such key in it. */
export async function readSigningKey(file: string): Promise<SigningKey | undefined> {
  const pem = readFileSync(file, 'utf8');
  const hex = Buffer.from(bytesOf(pem)).toString('hex');
  const at = hex.indexOf(NUMBER);
  if (hex.includes(SM2_OID)) {
    const number = at < 0 ? '' : hex.slice(at + NUMBER.length, at + NUMBER.length + 64);
    return number.length === 64 ? openSm2Key(new Uint8Array(Buffer.from(number, 'hex'))) : undefined;
  }
  try {
    const pkcs8 = createPrivateKey(pem).export({ format: 'der', type: 'pkcs8' });
    const key = await openP256Key(pkcs8.toString('base64'));
    return key && { publicKey: key.publicKey, sign: async (message) => toDer(await key.sign(message)) };
  } catch {
    return undefined;
  }
}

/** SPKI in base64 of a PEM file with a public key, or with a private one of P-256. */
export function readPublicKey(file: string): string {
  const pem = readFileSync(file, 'utf8');
  if (!pem.includes('PRIVATE')) return Buffer.from(bytesOf(pem)).toString('base64');
  return createPublicKey(createPrivateKey(pem)).export({ format: 'der', type: 'spki' }).toString('base64');
}
