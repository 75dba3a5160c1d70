// DSSE envelopes (secure-systems-lab/dsse 1.0) around in-toto statements: the signature covers the sent bytes
// and their declared type.
import { z } from 'zod';
import { fromBase64, toBase64 } from '../base64.ts';
import { ascii, concat } from '../bytes.ts';
import { hintOf, type SignerKey, type SigningKey, verifyBy } from './signature-key.ts';

/** Signatures of one statement: each takes a millisecond or two to verify. */
export const MODEL_SIGNATURES_MAX = 8;

const PAYLOAD_TYPE = 'application/vnd.in-toto+json';
export const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';

const signature = z.object({ keyid: z.string().max(128).default(''), sig: z.base64().min(1).max(256) });

export const envelope = z.object({
  payload: z.base64().min(1),
  payloadType: z.literal(PAYLOAD_TYPE),
  signatures: z.array(signature).min(1).max(MODEL_SIGNATURES_MAX),
});
export type Envelope = z.infer<typeof envelope>;

/** Pre-authentication encoding. */
const pae = (payload: Uint8Array): Uint8Array =>
  concat(ascii(`DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.length} `), payload);

export async function signPayload(payload: Uint8Array, key: SigningKey): Promise<Envelope> {
  const sig = toBase64(await key.sign(pae(payload)));
  const keyid = hintOf(key.publicKey);
  return { payload: toBase64(payload), payloadType: PAYLOAD_TYPE, signatures: [{ keyid, sig }] };
}

export interface OpenedEnvelope {
  readonly payload: Uint8Array;
  /** Distinct known signers. */
  readonly signers: readonly string[];
  /** Envelope with one signature of each signer: a repeated signature displaces no other. */
  readonly envelope: Envelope;
}

/**
 * Verifies an envelope. `undefined` when any signature is wrong or by an unknown key, even if others are
 * good.
 */
export async function openEnvelope(
  envelope: Envelope,
  keys: readonly SignerKey[],
): Promise<OpenedEnvelope | undefined> {
  const { signatures } = envelope;
  const payload = fromBase64(envelope.payload);
  if (!payload) return undefined;
  const signed = pae(payload);
  const signers = await Promise.all(signatures.map((one) => signerOf(signed, one, keys)));
  if (!signers.every((name) => name !== undefined)) return undefined;
  const once = signatures.filter((_, at) => signers.indexOf(signers[at] as string) === at);
  return { payload, signers: [...new Set(signers)], envelope: { ...envelope, signatures: once } };
}

async function signerOf(
  signed: Uint8Array,
  { keyid, sig }: Envelope['signatures'][number],
  keys: readonly SignerKey[],
): Promise<string | undefined> {
  const bytes = fromBase64(sig);
  if (!bytes) return undefined;
  for (const { name, key } of keys) {
    const spki = fromBase64(key);
    // A key id is a hint: without one every key is tried.
    if (!spki || (keyid !== '' && keyid !== hintOf(spki))) continue;
    if (await verifyBy(spki, signed, bytes)) return name;
  }
  return undefined;
}

/** Parses the payload as JSON; `undefined` when it is invalid. */
export function readPayload(payload: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload));
  } catch {
    return undefined;
  }
}
