// A P-256 key in Azure Key Vault or a Managed HSM. The settings name its version and its public half, so that the policy of
// the log does not depend on the vault.
import type { TokenCredential } from '@azure/identity';
import { CryptographyClient, type CryptographyClientOptions, KeyClient } from '@azure/keyvault-keys';
import { toBase64Url } from '../../../shared/audit/commitment.ts';
import { openP256Verifier, type P256Key, p256Spki, toDer } from '../../../shared/audit/ecdsa.ts';
import { equalBytes } from '../../../shared/audit/tree.ts';
import { sha256 } from '../../../shared/sha256.ts';
import type { after } from './after.ts';
import { isWithin } from './rounds.ts';

/**
 * Longest wait of a checkpoint for a vault's signature, tokens and retries included; then it is published
 * without. A vault needs 20 to 200 ms.
 */
const VAULT_SIGN_MS = 2_500;
/** Requests to a vault for one signature: a throttled request is retried a bounded number of times. */
const VAULT_TRIES_MAX = 3;
/**
 * Pause before the second request to a vault, doubled before the third; a `Retry-After` of the vault takes
 * precedence.
 */
const VAULT_PAUSE_MS = 100;
/**
 * Time without requests to a vault that failed: a log that commits once a second must not wait for it each
 * time.
 */
export const VAULT_REST_MS = 10_000;

interface VaultKeyName {
  /** `https://NAME.vault.azure.net/keys/KEY/VERSION`, or that of a Managed HSM. */
  readonly id: string;
  /** SPKI. */
  readonly publicKey: Uint8Array;
}

export interface VaultParts {
  readonly credential: TokenCredential;
  readonly options?: CryptographyClientOptions;
  /** Milliseconds since 1970. */
  now(): number;
  after: typeof after;
}

const SIGNATURE_BYTES = 64;

/** Thrown once at the start: the settings name another key than the vault has. */
class OtherKey extends Error {}

export class VaultKey implements P256Key {
  readonly publicKey: Uint8Array;
  readonly #id: string;
  readonly #parts: VaultParts;
  readonly #verifier: ReturnType<typeof openP256Verifier>;
  /** Set once the vault has confirmed the public half. */
  #client: CryptographyClient | undefined;
  /** Time of the last failure, ms since 1970. */
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor({ id, publicKey }: VaultKeyName, parts: VaultParts) {
    this.publicKey = publicKey;
    this.#id = id;
    this.#parts = parts;
    this.#verifier = openP256Verifier('vault', publicKey);
  }

  /** Compares the key with the settings. Throws `OtherKey`; a vault that does not answer is compared later. */
  async begin(): Promise<void> {
    await this.#within((signal) => this.#open(signal)).catch((error: unknown) => {
      if (error instanceof OtherKey) throw error;
    });
  }

  /** Returns a verified signature. Throws within `VAULT_SIGN_MS`, and at once for a while after a failure. */
  sign(message: Uint8Array): Promise<Uint8Array> {
    return this.#within(async (abortSignal) => {
      const client = await this.#open(abortSignal);
      const { result } = await client.sign('ES256', sha256(message), { abortSignal });
      const verifier = await this.#verifier;
      const isGood = result.length === SIGNATURE_BYTES && (await verifier.verify(message, toDer(result)));
      if (!isGood) throw new Error('the vault answers with a signature that is not of its key');
      return result;
    });
  }

  async #open(abortSignal: AbortSignal): Promise<CryptographyClient> {
    if (this.#client) return this.#client;
    const { origin, pathname } = new URL(this.#id);
    const [, , name = '', version = ''] = pathname.split('/');
    const { credential, options } = this.#parts;
    const maxRetries = VAULT_TRIES_MAX - 1;
    const all = { retryOptions: { maxRetries, retryDelayInMs: VAULT_PAUSE_MS }, ...options };
    const shown = await new KeyClient(origin, credential, all).getKey(name, { version, abortSignal });
    const { key = {} } = shown;
    const [x, y] = [key.x, key.y].map((number) => number && toBase64Url(number));
    const found = key.crv === 'P-256' && x && y ? p256Spki({ x, y }) : undefined;
    if (!found || !equalBytes(found, this.publicKey)) throw new OtherKey('the vault has another key of that name');
    this.#client = new CryptographyClient(shown, credential, all);
    return this.#client;
  }

  async #within<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { now, after } = this.#parts;
    if (isWithin(now(), this.#failedAt, VAULT_REST_MS)) throw new Error('the vault failed a moment ago');
    const aborting = new AbortController();
    const deadline = after(VAULT_SIGN_MS);
    const timedOut = deadline.elapsed.then((): never => {
      aborting.abort();
      throw new Error('the vault does not answer in time');
    });
    try {
      return await Promise.race([work(aborting.signal), timedOut]);
    } catch (error) {
      this.#failedAt = now();
      throw error;
    } finally {
      deadline.cancel();
    }
  }
}
