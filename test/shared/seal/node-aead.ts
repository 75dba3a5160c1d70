import { nodeAead } from '../../../infra/pool/agent/aead.ts';
import { type AeadFactory, webCryptoAead } from '../../../shared/seal/aead.ts';

/** Every implementation there is: the runtimes' own and the one an agent hands in. They agree on every byte. */
export const aeads: readonly (readonly [string, AeadFactory])[] = [
  ['WebCrypto', webCryptoAead],
  ['node:crypto', nodeAead],
];
