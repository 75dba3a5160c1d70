// Signers of revisions at the local stack. In production each has a key of their own; here one person holds
// all.
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { writePrivate } from '../../identity/keys.ts';

/** Author, two reviewers, and the machine that makes smaller revisions (`model quantise --watch`). */
const SIGNERS = ['author', 'reviewer', 'approver', 'quantiser'] as const;

/**
 * Returns `MODEL_SIGNERS` of the functions. The private halves are `signers/NAME.pem`, for `npx auricle model
 * … --as NAME`.
 */
export function createSigners(folder: string): { name: string; key: string; worker?: true }[] {
  return SIGNERS.map((name) => {
    const file = path.join(folder, 'signers', `${name}.pem`);
    if (!existsSync(file)) {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      writePrivate(file, privateKey.export({ format: 'pem', type: 'pkcs8' }).toString());
    }
    const publicKey = createPublicKey(createPrivateKey(readFileSync(file)));
    const key = publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
    return { name, key, ...(name === 'quantiser' && { worker: true }) };
  });
}
