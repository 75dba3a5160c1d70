// A P-256 key that Azure Key Vault or a Managed HSM keeps and never shows (learn.microsoft.com, REST "Sign - Sign" and "Get
// Key", 7.4): ES256 over the SHA-256 of the message, answered as r and s in base64url. Which version of which key it is, and
// its public half, stand in the settings: the policy of the log does not depend on what a vault says today.
import { z } from 'zod';
import { fromBase64Url, toBase64Url } from '../../../shared/audit/commitment.ts';
import { openP256Verifier, type P256Key, p256Spki, toDer } from '../../../shared/audit/ecdsa.ts';
import { sha256 } from '../../../shared/audit/sha256.ts';
import { equalBytes } from '../../../shared/audit/tree.ts';
import { limits } from '../../../shared/limits.ts';
import { isWithin } from '../rounds.ts';
import { askVault, VaultFailed, type VaultParts } from './ask-vault.ts';
import { type Identity, VaultTokens } from './vault-token.ts';

interface VaultKeyPlace {
  /** `https://NAME.vault.azure.net/keys/KEY/VERSION`, or of a Managed HSM. */
  readonly id: string;
  /** SPKI. */
  readonly publicKey: Uint8Array;
}

const shown = z.object({
  key: z.object({ kty: z.enum(['EC', 'EC-HSM']), crv: z.literal('P-256'), x: z.string(), y: z.string() }),
});
const signed = z.object({ value: z.string() });
const SIGNATURE_BYTES = 64;

/** Thrown once at the start: somebody has written down another key than the vault has. */
class OtherKey extends Error {}

/** Whom the tokens are for: `https://vault.azure.net`, `https://managedhsm.azure.net`, and theirs of other clouds. */
const resourceOf = (id: string): string => `https://${new URL(id).hostname.split('.').slice(1).join('.')}`;

export class VaultKey implements P256Key {
  readonly publicKey: Uint8Array;
  readonly #id: string;
  readonly #parts: VaultParts;
  readonly #tokens: VaultTokens;
  readonly #verifier: ReturnType<typeof openP256Verifier>;
  /** The vault has said that the key is the one that is written down. */
  #known = false;
  /** It failed then, ms since 1970, and is not asked for so long. */
  #rests = { since: 0, ms: 0 };

  constructor({ id, publicKey }: VaultKeyPlace, identity: Identity, parts: VaultParts) {
    this.publicKey = publicKey;
    this.#id = id;
    this.#parts = parts;
    this.#tokens = new VaultTokens(identity, resourceOf(id), parts.send, parts.now);
    this.#verifier = openP256Verifier('vault', publicKey);
  }

  /** Looks whether it is the key that is written down. Throws `OtherKey`; a vault that does not answer is asked later. */
  async begin(): Promise<void> {
    await this.#within(async (ask) => this.#know(ask)).catch((error: unknown) => {
      if (error instanceof OtherKey) throw error;
    });
  }

  /** A signature that was verified. Throws within `limits.auditVaultMs`, and for a while at once after it has thrown. */
  sign(message: Uint8Array): Promise<Uint8Array> {
    return this.#within(async (ask) => {
      await this.#know(ask);
      const { value } = signed.parse(await ask('/sign', { alg: 'ES256', value: toBase64Url(sha256(message)) }));
      const numbers = fromBase64Url(value);
      const good =
        numbers?.length === SIGNATURE_BYTES && (await (await this.#verifier).verify(message, toDer(numbers)));
      if (!good) throw new VaultFailed('the vault answers with a signature that is not of its key');
      return numbers;
    });
  }

  async #know(ask: Ask): Promise<void> {
    if (this.#known) return;
    const { key } = shown.parse(await ask(''));
    const there = p256Spki(key);
    if (!there || !equalBytes(there, this.publicKey)) throw new OtherKey('the vault has another key of that name');
    this.#known = true;
  }

  async #within<T>(work: (ask: Ask) => Promise<T>): Promise<T> {
    const { now, after } = this.#parts;
    const at = now();
    if (isWithin(at, this.#rests.since, this.#rests.ms)) throw new VaultFailed('the vault failed a moment ago');
    const aborting = new AbortController();
    const bell = after(limits.auditVaultMs.value);
    const late = bell.rings.then((): never => {
      aborting.abort();
      throw new VaultFailed('the vault does not answer in time');
    });
    const until = at + limits.auditVaultMs.value;
    const ask: Ask = (path, body) =>
      askVault(this.#parts, this.#tokens, `${this.#id}${path}`, body, until, aborting.signal);
    try {
      return await Promise.race([work(ask), late]);
    } catch (error) {
      const wished = error instanceof VaultFailed ? error.restMs : 0;
      const { auditVaultRestMs: least, auditVaultRestMostMs: most } = limits;
      this.#rests = { since: now(), ms: Math.min(Math.max(least.value, wished), most.value) };
      throw error;
    } finally {
      bell.cancel();
    }
  }
}

type Ask = (path: string, body?: object) => Promise<unknown>;
