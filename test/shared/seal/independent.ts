import { createCipheriv, createECDH, createHash, createHmac } from 'node:crypto';

// The whole profile of shared/seal/PROTOCOL.md once more, from the sender's side, straight from RFC 9180 and RFC 9605
// and sharing no line with shared/seal. The vectors come from here, so they test the text and not only the code.

type Hash = 'sha256' | 'sha512';

const bytes = (...parts: (string | Uint8Array | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'ascii') : Buffer.from(part))));
const number = (value: number, length: number) =>
  bytes(Array.from({ length }, (_, at) => Math.floor(value / 256 ** (length - 1 - at)) % 256));
const sha256 = (data: string | Uint8Array) => createHash('sha256').update(data).digest();

const extract = (hash: Hash, salt: Uint8Array, input: Uint8Array) => createHmac(hash, salt).update(input).digest();
function expand(hash: Hash, prk: Uint8Array, info: Uint8Array, length: number): Buffer {
  let block = Buffer.alloc(0);
  let out = Buffer.alloc(0);
  for (let count = 1; out.length < length; count++) {
    block = createHmac(hash, prk)
      .update(bytes(block, info, [count]))
      .digest();
    out = bytes(out, block);
  }
  return out.subarray(0, length);
}

// RFC 9180 §4.
const labeledExtract = (suite: Uint8Array, salt: Uint8Array, label: string, input: Uint8Array) =>
  extract('sha256', salt, bytes('HPKE-v1', suite, label, input));
const labeledExpand = (suite: Uint8Array, prk: Uint8Array, label: string, info: Uint8Array, length: number) =>
  expand('sha256', prk, bytes(number(length, 2), 'HPKE-v1', suite, label, info), length);

export interface Inputs {
  /** Private P-256 keys, 32 bytes, hex. */
  readonly recipient: string;
  readonly ephemeral: string;
  readonly attestation: string;
  readonly ticket: string;
  readonly suite: number;
}

function pair(hex: string) {
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(Buffer.from(hex, 'hex'));
  return ecdh;
}

/** HPKE SetupBaseS with a given ephemeral key, then Export, as PROTOCOL.md §2 and §3 say. */
export function setUp({ recipient, ephemeral, attestation, ticket, suite }: Inputs) {
  const publicKey = pair(recipient).getPublicKey();
  const enc = pair(ephemeral).getPublicKey();
  const dh = pair(ephemeral).computeSecret(publicKey);
  const none = Buffer.alloc(0);

  const kem = bytes('KEM', number(0x0010, 2));
  const eae = labeledExtract(kem, none, 'eae_prk', dh);
  const shared = labeledExpand(kem, eae, 'shared_secret', bytes(enc, publicKey), 32);

  const hpke = bytes('HPKE', number(0x0010, 2), number(0x0001, 2), number(0x0002, 2));
  const info = bytes('auricle seal 1', number(suite, 2), sha256(attestation));
  const context = bytes(
    [0],
    labeledExtract(hpke, none, 'psk_id_hash', none),
    labeledExtract(hpke, none, 'info_hash', info),
  );
  const secret = labeledExtract(hpke, shared, 'secret', none);
  const exporter = labeledExpand(hpke, secret, 'exp', context, 32);

  const key = (direction: string) =>
    labeledExpand(hpke, exporter, 'sec', bytes(`auricle seal 1 ${direction}`, sha256(ticket)), 64);
  const lane = { request: key('lane request'), answer: key('lane answer') };
  return { publicKey, enc, info, request: key('request'), answer: key('answer'), lane };
}

/** SFrame key and salt of suite 5 (RFC 9605 §4.4.2), key id 0. */
export function frameSecrets(baseKey: Uint8Array) {
  const prk = extract('sha512', Buffer.alloc(0), baseKey);
  const tail = bytes(number(0, 8), number(5, 2));
  return {
    key: expand('sha512', prk, bytes('SFrame 1.0 Secret key ', tail), 32),
    salt: expand('sha512', prk, bytes('SFrame 1.0 Secret salt ', tail), 12),
  };
}

/** A counter in the shortest form of RFC 9605 §4.3, key id 0. */
function header(counter: number): number[] {
  if (counter < 8) return [counter];
  const digits = [...number(counter, 7)];
  const shortest = digits.slice(digits.findIndex((byte) => byte !== 0));
  return [0x08 | (shortest.length - 1), ...shortest];
}

const length = (count: number) => (count < 64 ? [count] : [0x40 | (count >> 8), count & 0xff]);

/** One record of PROTOCOL.md §5, for lengths as small as those of the vectors. */
export function sealRecord(baseKey: Uint8Array, counter: number, flag: number, plaintext: Uint8Array): Buffer {
  const { key, salt } = frameSecrets(baseKey);
  const nonce = salt.map((byte, at) => byte ^ (number(counter, 12)[at] ?? 0));
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(bytes(header(counter), [flag]));
  const sealed = bytes(cipher.update(plaintext), cipher.final(), cipher.getAuthTag());
  const record = bytes([flag], header(counter), sealed);
  return bytes(length(record.length), record);
}

/** Messages of a packed record, §7. */
export const pack = (messages: readonly string[]): Buffer =>
  bytes(...messages.flatMap((message) => [length(message.length), message]));
