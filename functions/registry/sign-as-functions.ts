// Statements signed by the functions with the key of their release maps: withdrawal and retirement, for a
// caller or a verdict. Where people must sign, this signature does not count.
import { createPrivateKey, createPublicKey, type JsonWebKey, sign } from 'node:crypto';
import { toBase64 } from '../../shared/base64.ts';
import type { SignerKey, SigningKey } from '../../shared/registry/signature-key.ts';
import type { Settings } from '../settings.ts';
import { FUNCTIONS } from './gate.ts';

/** Opens the key of the functions; `undefined` where none is configured. */
export function openOwnKey({ SERVICE_KEY }: Pick<Settings, 'SERVICE_KEY'>): SigningKey | undefined {
  if (!SERVICE_KEY) return undefined;
  const key = createPrivateKey({ key: SERVICE_KEY as JsonWebKey, format: 'jwk' });
  return {
    publicKey: new Uint8Array(createPublicKey(key).export({ format: 'der', type: 'spki' })),
    sign: async (message) => new Uint8Array(sign('sha256', message, key)),
  };
}

export const ownSigner = ({ publicKey }: SigningKey): SignerKey => ({ name: FUNCTIONS, key: toBase64(publicKey) });
