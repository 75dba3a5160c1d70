import { type CipherGCMTypes, createCipheriv, createDecipheriv, createSecretKey } from 'node:crypto';
import type { AeadFactory } from '../../../../shared/seal/aead.ts';

/**
 * Seals and opens without leaving the thread. For records of a few hundred bytes, as answers are, WebCrypto's way
 * through its thread pool costs several times what the cipher does.
 */
export const nodeAead: AeadFactory = (suite, bytes) => {
  // Bytes would be made into a key at each record, which takes several times as long as the cipher.
  const key = createSecretKey(bytes);
  const name = suite.openssl as CipherGCMTypes;
  const options = { authTagLength: suite.Nt };
  return {
    seal(nonce, aad, plaintext) {
      const cipher = createCipheriv(name, key, nonce, options).setAAD(aad);
      const sealed = Buffer.allocUnsafe(plaintext.length + suite.Nt);
      // No mode of the suites keeps bytes back until the end.
      sealed.set(cipher.update(plaintext));
      cipher.final();
      sealed.set(cipher.getAuthTag(), plaintext.length);
      return sealed;
    },
    open(nonce, aad, sealed) {
      if (sealed.length < suite.Nt) return undefined;
      const decipher = createDecipheriv(name, key, nonce, options).setAAD(aad);
      decipher.setAuthTag(sealed.subarray(sealed.length - suite.Nt));
      const plaintext = decipher.update(sealed.subarray(0, sealed.length - suite.Nt));
      try {
        const rest = decipher.final();
        // No mode of the suites keeps bytes back until here, and copying costs as much as the cipher.
        return rest.length > 0 ? Buffer.concat([plaintext, rest]) : plaintext;
      } catch {
        // `final` throws on a wrong tag.
        return undefined;
      }
    },
  };
};
