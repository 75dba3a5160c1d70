import { createHash, randomUUID } from 'node:crypto';
import { CompactSign, exportJWK, generateKeyPair } from 'jose';
import { refuse } from '../../../../shared/refusal.ts';
import { no, type Result } from '../../../../shared/result.ts';
import { SEAL_SETUP_MS, TICKET_S } from '../../../../shared/seal/limits.ts';
import { generateSealKey, type SealPrivateKey, type SealSetup, setupRecipient } from '../../../../shared/seal/setup.ts';
import type { SuiteId } from '../../../../shared/seal/suites.ts';
import { type Binding, unwrap, type Wrapped } from '../../../../shared/seal/wrap.ts';
import type { Attest, Attestation } from './attest.ts';

/** Stored HPKE set-ups, one per isolate; dropping one costs a key agreement, never a request. */
export const SEAL_SETUPS_MAX = 1_024;
/** Stored attested keys: the newest, and older ones an edge may still use. */
const SEAL_KEYS_MAX = 4;

/** Suites this agent opens. */
export const openSuites: readonly SuiteId[] = [5];

export const sha256 = (bytes: string | Uint8Array): string => createHash('sha256').update(bytes).digest('base64url');

interface Epoch extends Attestation {
  readonly digest: string;
  readonly sealKey: SealPrivateKey;
}

/**
 * The keys of one boot. They live in memory only: the end of the process ends what they can open. Each
 * attestation gets a seal key of its own; the one before stays until its attestation expires, since an edge
 * may still hold it.
 */
export interface Keys {
  /** Random per process start. */
  readonly boot: string;
  /** The attestation to announce. */
  current(): Attestation;
  /** Makes a seal key, has it attested, and makes it current. */
  renew(now: number): Promise<Attestation>;
  /** Compact JWS (ES256) with the attested key; `type` says what for, so that one thing signed cannot pass for another. */
  sign(payload: unknown, type?: string): Promise<string>;
  /** Opens what was HPKE-sealed to the key of an attestation; `undefined` when it was not, or that is no longer held. */
  unwrap(attestationDigest: string, box: Wrapped, binding: Binding): Promise<Uint8Array | undefined>;
  /** The HPKE set-up behind `enc`, remembered, since an edge uses one for many requests. */
  setup(request: {
    enc: Uint8Array;
    suite: SuiteId;
    attestationDigest: string;
    now: number;
  }): Promise<Result<SealSetup>>;
}

export async function createKeys(agent: string, attest: Attest): Promise<Keys> {
  const boot = randomUUID();
  const signKey = await generateKeyPair('ES256');
  const { kty, crv, x, y } = await exportJWK(signKey.publicKey);
  const signJwk = { kty, crv, x, y, use: 'sig' } as JsonWebKey;
  let epochs: Epoch[] = [];
  const setups = new Map<string, { made: number; setup: Promise<Result<SealSetup>> }>();

  return {
    boot,
    current() {
      const [newest] = epochs;
      if (!newest) throw new Error('the keys are not attested yet');
      return newest;
    },
    async renew(now) {
      const { publicJwk, privateKey } = await generateSealKey();
      const runtime = { keys: [{ ...publicJwk, use: 'enc' } as JsonWebKey, signJwk], suites: openSuites, agent };
      const attestation = await attest(runtime, now);
      const alive = epochs.filter(({ expires }) => expires * 1_000 > now);
      epochs = [{ ...attestation, digest: sha256(attestation.token), sealKey: privateKey }, ...alive];
      epochs = epochs.slice(0, SEAL_KEYS_MAX);
      return attestation;
    },
    sign(payload, type) {
      const bytes = new TextEncoder().encode(JSON.stringify(payload));
      const header = { alg: 'ES256', kid: agent, ...(type !== undefined && { typ: type }) };
      return new CompactSign(bytes).setProtectedHeader(header).sign(signKey.privateKey);
    },
    async unwrap(attestationDigest, box, binding) {
      const epoch = epochs.find(({ digest }) => digest === attestationDigest);
      return epoch && unwrap(epoch.sealKey, box, binding);
    },
    async setup({ enc, suite, attestationDigest, now }) {
      const epoch = epochs.find(({ digest }) => digest === attestationDigest);
      if (!epoch) return no(refuse('misdirected', undefined, 'sealed to an attestation this boot does not hold'));
      const name = `${suite} ${attestationDigest} ${Buffer.from(enc).toString('base64url')}`;
      const known = setups.get(name);
      if (known && now - known.made < SEAL_SETUP_MS + TICKET_S * 1_000) return known.setup;
      // Maps keep the order of insertion, so the first entry is the oldest.
      const [oldest] = setups.keys();
      if (setups.size >= SEAL_SETUPS_MAX && oldest !== undefined) setups.delete(oldest);
      const setup = setupRecipient(epoch.sealKey, enc, suite, epoch.token);
      setups.delete(name);
      setups.set(name, { made: now, setup });
      return setup;
    },
  };
}
