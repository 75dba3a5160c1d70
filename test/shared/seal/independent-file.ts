import { createCipheriv, createECDH, createHmac } from 'node:crypto';
import { sealRecord } from './independent.ts';

// §10 and §11 of shared/seal/PROTOCOL.md once more, from the sender's side, straight from RFC 9180 and sharing no line
// with shared/seal. Only the records of a file are those of independent.ts.

const bytes = (...parts: (string | Uint8Array | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from(part))));
const number = (value: number, length: number) =>
  bytes(Array.from({ length }, (_, at) => Math.floor(value / 256 ** (length - 1 - at)) % 256));
const hmac = (key: Uint8Array, data: Uint8Array) => createHmac('sha256', key).update(data).digest();

function expand(prk: Uint8Array, info: Uint8Array, length: number): Buffer {
  let block = Buffer.alloc(0);
  let out = Buffer.alloc(0);
  for (let count = 1; out.length < length; count++) {
    block = hmac(prk, bytes(block, info, [count]));
    out = bytes(out, block);
  }
  return out.subarray(0, length);
}

const labeledExtract = (suite: Uint8Array, salt: Uint8Array, label: string, input: Uint8Array) =>
  hmac(salt, bytes('HPKE-v1', suite, label, input));
const labeledExpand = (suite: Uint8Array, prk: Uint8Array, label: string, info: Uint8Array, length: number) =>
  expand(prk, bytes(number(length, 2), 'HPKE-v1', suite, label, info), length);

function pair(hex: string) {
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(Buffer.from(hex, 'hex'));
  return ecdh;
}

/** RFC 9180 §6.1, SealBase, with a given ephemeral key: `enc`, and ciphertext with tag. */
export function sealBase(recipient: string, ephemeral: string, info: Uint8Array, aad: Uint8Array, secret: Uint8Array) {
  const publicKey = pair(recipient).getPublicKey();
  const enc = pair(ephemeral).getPublicKey();
  const dh = pair(ephemeral).computeSecret(publicKey);
  const none = Buffer.alloc(0);
  const kem = bytes('KEM', number(0x0010, 2));
  const eae = labeledExtract(kem, none, 'eae_prk', dh);
  const shared = labeledExpand(kem, eae, 'shared_secret', bytes(enc, publicKey), 32);
  const suite = bytes('HPKE', number(0x0010, 2), number(0x0001, 2), number(0x0002, 2));
  const context = bytes(
    [0],
    labeledExtract(suite, none, 'psk_id_hash', none),
    labeledExtract(suite, none, 'info_hash', info),
  );
  const prk = labeledExtract(suite, shared, 'secret', none);
  const key = labeledExpand(suite, prk, 'key', context, 32);
  // Sequence number 0: the nonce is the base nonce.
  const nonce = labeledExpand(suite, prk, 'base_nonce', context, 12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(aad);
  return { enc, wrapped: bytes(cipher.update(secret), cipher.final(), cipher.getAuthTag()) };
}

export interface FileInputs {
  /** Private P-256 keys, 32 bytes, hex. */
  readonly zone: string;
  readonly ephemeral: string;
  /** RFC 7638 thumbprint of the zone key. */
  readonly key: string;
  readonly baseKey: string;
  readonly tenant: string;
  readonly upload: string;
  readonly name: string;
}

/** A whole file of suite 5; `segments` are the plaintexts of its records. */
export function sealFile(inputs: FileInputs, segments: readonly Uint8Array[]) {
  const { zone, ephemeral, key, tenant, upload, name } = inputs;
  const baseKey = Buffer.from(inputs.baseKey, 'hex');
  const info = bytes('auricle file 1', number(5, 2), key);
  const aad = bytes(tenant, [0], upload, [0], name);
  const { enc, wrapped } = sealBase(zone, ephemeral, info, aad, baseKey);
  const json = bytes(
    `{"v":1,"suite":5,"key":"${key}","enc":"${enc.toString('base64url')}","wrapped":"${wrapped.toString('base64url')}",` +
      `"tenant":"${tenant}","upload":"${upload}","name":"${name}"}`,
  );
  const head = bytes('AURICLE1', number(json.length, 2), json);
  const records = segments.map((plain, at) => sealRecord(baseKey, at, at === segments.length - 1 ? 1 : 0, plain));
  return { info, aad, enc, wrapped, head, records };
}
