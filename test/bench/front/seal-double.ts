// The agent's half of the seal, made for speed: RFC 9180 and RFC 9605 with Node's synchronous crypto, from which the
// edge cannot tell it apart. It seals answers; request bodies are opened by the real code, and only to prove a run.
import { createCipheriv, createECDH, createHash, createHmac } from 'node:crypto';

const PROFILE = 'auricle seal 1';
const SUITE = 0x0005;

const number = (value: number, length: number) =>
  Buffer.from(Array.from({ length }, (_, at) => Math.floor(value / 256 ** (length - 1 - at)) % 256));
const bytes = (...parts: (string | Uint8Array)[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)));
export const sha256 = (data: string | Uint8Array) => createHash('sha256').update(data).digest();

type Hash = 'sha256' | 'sha512';
const extract = (hash: Hash, salt: Uint8Array, input: Uint8Array) => createHmac(hash, salt).update(input).digest();

function expand(hash: Hash, secret: Uint8Array, info: Uint8Array, length: number): Buffer {
  const blocks: Buffer[] = [];
  for (let made = 0, block = Buffer.alloc(0); made < length; made += block.length) {
    block = createHmac(hash, secret)
      .update(block)
      .update(info)
      .update(Uint8Array.of(blocks.length + 1))
      .digest();
    blocks.push(block);
  }
  return Buffer.concat(blocks).subarray(0, length);
}

const labeledExtract = (suite: Uint8Array, salt: Uint8Array, label: string, input: Uint8Array) =>
  extract('sha256', salt, bytes('HPKE-v1', suite, label, input));
const labeledExpand = (suite: Uint8Array, secret: Uint8Array, label: string, info: Uint8Array, length: number) =>
  expand('sha256', secret, bytes(number(length, 2), 'HPKE-v1', suite, label, info), length);

const NONE = Buffer.alloc(0);
const KEM = bytes('KEM', number(0x0010, 2));
const HPKE = bytes('HPKE', number(0x0010, 2), number(0x0001, 2), number(0x0002, 2));

/** The receiving side of HPKE in export mode; gives the base key of one direction of the request with this ticket. */
export type Direction = 'request' | 'answer' | 'lane request' | 'lane answer';

export function createRecipient(attestation: () => string) {
  const pair = createECDH('prime256v1');
  const publicKey = pair.generateKeys();
  const coordinate = (from: number) => publicKey.subarray(from, from + 32).toString('base64url');
  const jwk = { kty: 'EC', crv: 'P-256', x: coordinate(1), y: coordinate(33), use: 'enc' };
  const exporters = new Map<string, Buffer>();

  function exporterOf(enc: string): Buffer {
    let exporter = exporters.get(enc);
    if (!exporter) {
      const encapsulated = Buffer.from(enc, 'base64url');
      const prk = labeledExtract(KEM, NONE, 'eae_prk', pair.computeSecret(encapsulated));
      const shared = labeledExpand(KEM, prk, 'shared_secret', bytes(encapsulated, publicKey), 32);
      const info = bytes(PROFILE, number(SUITE, 2), sha256(attestation()));
      const context = bytes(
        Uint8Array.of(0),
        labeledExtract(HPKE, NONE, 'psk_id_hash', NONE),
        labeledExtract(HPKE, NONE, 'info_hash', info),
      );
      exporter = labeledExpand(HPKE, labeledExtract(HPKE, shared, 'secret', NONE), 'exp', context, 32);
      exporters.set(enc, exporter);
    }
    return exporter;
  }

  const baseKey = (enc: string, direction: Direction, ticket: string) =>
    labeledExpand(HPKE, exporterOf(enc), 'sec', bytes(`${PROFILE} ${direction}`, sha256(ticket)), 64);
  return { jwk, baseKey };
}

const KEY_LABEL = bytes('SFrame 1.0 Secret key ', number(0, 8), number(SUITE, 2));
const SALT_LABEL = bytes('SFrame 1.0 Secret salt ', number(0, 8), number(SUITE, 2));

/** Counters of one request of a session. */
const FRAMES = 2 ** 24;

/** Seals whole answers with the answer key of a session: one record that holds all messages. */
export function createLaneSealer(baseKey: Uint8Array): (request: number, packed: Buffer) => Buffer {
  const secret = extract('sha512', NONE, baseKey);
  const key = expand('sha512', secret, KEY_LABEL, 32);
  const salt = expand('sha512', secret, SALT_LABEL, 12);
  return (request, packed) => {
    const counter = Buffer.alloc(8);
    counter.writeBigUInt64BE(BigInt(request) * BigInt(FRAMES));
    const nonce = Buffer.from(salt);
    for (let at = 0; at < 8; at += 1) nonce[4 + at] = (nonce[4 + at] ?? 0) ^ (counter[at] ?? 0);
    const digits = counter.subarray(counter.findIndex((byte) => byte !== 0));
    const header = bytes(Uint8Array.of(0x08 | (digits.length - 1)), digits);
    const flag = Uint8Array.of(3);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(bytes(header, flag));
    const sealed = cipher.update(packed);
    cipher.final();
    const length = flag.length + header.length + sealed.length + 16;
    return bytes(number(0x4000 | length, 2), flag, header, sealed, cipher.getAuthTag());
  };
}
