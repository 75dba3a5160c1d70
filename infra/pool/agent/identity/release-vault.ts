// Zone keys from Azure Key Vault or a Managed HSM by secure key release: the vault checks an attestation against the
// release policy of the key, and wraps the key to the RSA key that the attestation binds.
import {
  constants,
  createDecipheriv,
  createPrivateKey,
  generateKeyPair,
  type KeyObject,
  privateDecrypt,
  randomUUID,
} from 'node:crypto';
import { promisify } from 'node:util';
import type { TokenCredential } from '@azure/identity';
import type { KeyClient, KeyClientOptions } from '@azure/keyvault-keys';
import { decodeJwt } from 'jose';
import { z } from 'zod';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { takeZoneKeys } from '../../../../shared/seal/zone-key-release.ts';
import { ATTESTATION_MS, type Attest } from './attest.ts';
import { openSuites } from './keys.ts';
import type { FileKey, RequestZoneKeys } from './zone-key.ts';

/** Modulus of the key that a vault wraps to: that of Microsoft's own release client. The key serves one release. */
const WRAPPING_KEY_BITS = 2_048;
/** RSA-OAEP with SHA-256 of a fresh AES key, behind it the private key (PKCS #8) in AES key wrap with padding (RFC 5649). */
const WRAPPING = 'RSA_AES_KEY_WRAP_256';
const RFC_5649_IV = Buffer.from('a65959a6', 'hex');

export interface VaultOptions {
  /** `https://NAME.vault.azure.net`, or that of a Managed HSM. */
  readonly vault: string;
  readonly agent: string;
  readonly attest: Attest;
  readonly now: () => number;
  /** Replaced by tests. */
  readonly credential?: TokenCredential;
  readonly client?: KeyClientOptions;
}

/** Payload of the JWS in the answer to "Release Key", as far as it is read. */
const released = z.object({
  request: z.object({ enc: z.literal(WRAPPING) }),
  response: z.object({ key: z.object({ key: z.object({ key_hsm: z.base64url() }) }) }),
});
/** Content of `key_hsm`. */
const wrappedKey = z.object({ ciphertext: z.base64url() });

const generate = promisify(generateKeyPair);
const unavailable = (detail: string) => refuse('uploads_unavailable', undefined, detail);
const broken = (detail: string) => refuse('seal_broken', undefined, `release: ${detail}`);

/** Returns what requests zone keys of a vault. */
export function requestFromVault(options: VaultOptions): RequestZoneKeys {
  return async (expected) => {
    const keys: JsonWebKey[] = [];
    const { publicKey, privateKey } = await generate('rsa', { modulusLength: WRAPPING_KEY_BITS });
    const jwk = { ...publicKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'enc', key_ops: ['encrypt'] };
    let attestation: string;
    try {
      const runtime = { keys: [jwk], suites: openSuites, agent: options.agent };
      attestation = (await options.attest(runtime, options.now())).token;
    } catch {
      return no(unavailable('no attestation for the key vault'));
    }
    const client = await openClient(options);
    for (const key of expected) {
      const value = await releaseKey(client, key, attestation);
      if (!value.ok) return value;
      const opened = openReleased(value.value, privateKey);
      if (!opened) return no(broken('the answer of the key vault does not open'));
      keys.push(opened);
    }
    return takeZoneKeys(keys, expected);
  };
}

async function openClient({ vault, credential, client }: VaultOptions): Promise<KeyClient> {
  // Loaded on demand: agents without a vault start without the two libraries.
  const { DefaultAzureCredential } = await import('@azure/identity');
  const { KeyClient: Client } = await import('@azure/keyvault-keys');
  return new Client(vault, credential ?? new DefaultAzureCredential(), client);
}

async function releaseKey(client: KeyClient, { vaultKey }: FileKey, attestation: string): Promise<Result<string>> {
  const [name, version] = vaultKey?.split('/') ?? [];
  if (!name || !version) return no(broken('a zone key names no vaultKey'));
  try {
    const abortSignal = AbortSignal.timeout(ATTESTATION_MS);
    const { value } = await client.releaseKey(name, attestation, { version, algorithm: WRAPPING, abortSignal });
    return ok(value);
  } catch (error) {
    return no(refusalOf((error as { statusCode?: number }).statusCode));
  }
}

/** Returns the refusal of a vault by its status; no status, throttling and outages may pass. */
function refusalOf(status: number | undefined): Refusal {
  if (status === 401) return refuse('token_invalid', undefined, 'the key vault refuses the identity');
  // 400: the attestation cannot be read; 403: release policy or role. Error bodies quote claims and are not read.
  if (status === 400 || status === 403)
    return refuse('attestation_invalid', undefined, 'the key vault refuses release');
  return status === 404 ? broken('the key vault has no such key') : unavailable('the key vault cannot be reached');
}

/**
 * Returns the private JWK in a vault's answer. Its signature is not verified: the key counts only if its public half is
 * one of the settings', which proves more.
 */
function openReleased(value: string | undefined, privateKey: KeyObject): JsonWebKey | undefined {
  try {
    const { key_hsm } = released.parse(decodeJwt(value ?? '')).response.key.key;
    const { ciphertext } = wrappedKey.parse(JSON.parse(Buffer.from(key_hsm, 'base64url').toString()));
    const bytes = Buffer.from(ciphertext, 'base64url');
    const oaep = { key: privateKey, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' };
    const kek = privateDecrypt(oaep, bytes.subarray(0, WRAPPING_KEY_BITS / 8));
    const cipher = createDecipheriv(`aes${kek.length * 8}-wrap-pad`, kek, RFC_5649_IV);
    const der = Buffer.concat([cipher.update(bytes.subarray(WRAPPING_KEY_BITS / 8)), cipher.final()]);
    return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).export({ format: 'jwk' }) as JsonWebKey;
  } catch {
    return undefined;
  }
}
