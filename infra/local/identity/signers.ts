// Who may sign revisions of models at the local stack. In production each of them has a key of their own and keeps it; here
// all of them are the person in front of it.
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { writePrivate } from './keys.ts';

/** Whoever makes revisions, two who look at them, and the machine that makes smaller ones (`model quantise --watch`). */
const SIGNERS = ['author', 'reviewer', 'approver', 'quantiser'] as const;

/** As `MODEL_SIGNERS` of the functions. The private halves lie in `signers/NAME.pem`, for `npx auricle model … --as NAME`. */
export function keepSigners(folder: string): { name: string; key: string; worker?: true }[] {
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
