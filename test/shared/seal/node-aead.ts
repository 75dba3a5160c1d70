import { type CipherGCMTypes, createCipheriv, createDecipheriv } from 'node:crypto';
import { type AeadFactory, webCryptoAead } from '../../../shared/seal/aead.ts';

/** The synchronous implementation an agent hands in; here it shows that both agree on every byte. */
export const nodeAead: AeadFactory = (suite, key) => {
  const name = suite.openssl as CipherGCMTypes;
  const options = { authTagLength: suite.Nt };
  return {
    seal(nonce, aad, plaintext) {
      const cipher = createCipheriv(name, key, nonce, options).setAAD(aad);
      return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
    },
    open(nonce, aad, sealed) {
      if (sealed.length < suite.Nt) return undefined;
      const decipher = createDecipheriv(name, key, nonce, options).setAAD(aad);
      decipher.setAuthTag(sealed.subarray(sealed.length - suite.Nt));
      const plaintext = decipher.update(sealed.subarray(0, sealed.length - suite.Nt));
      try {
        return Buffer.concat([plaintext, decipher.final()]);
      } catch {
        return undefined;
      }
    },
  };
};

export const aeads: readonly (readonly [string, AeadFactory])[] = [
  ['WebCrypto', webCryptoAead],
  ['node:crypto', nodeAead],
];
