import { nodeAead } from '../../../infra/pool/agent/identity/aead.ts';
import { type AeadFactory, webCryptoAead } from '../../../shared/seal/aead.ts';

/** All implementations: those of the runtimes and the agent's own. They agree on every byte. */
export const aeads: readonly (readonly [string, AeadFactory])[] = [
  ['WebCrypto', webCryptoAead],
  ['node:crypto', nodeAead],
];
