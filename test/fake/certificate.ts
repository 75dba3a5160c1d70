// Self-signed certificates (RFC 5280) of fresh P-256 keys, in PEM: Node reads certificates and makes none.
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

/** An ASN.1 value in DER. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const sequence = (...parts: readonly Uint8Array[]) => der(0x30, ...parts);
const oid = (hex: string) => der(0x06, Buffer.from(hex, 'hex'));
const time = (at: Date) => der(0x18, Buffer.from(`${at.toISOString().replace(/[-:T]|\.\d+/g, '')}`));
const pem = (label: string, bytes: Buffer) =>
  `-----BEGIN ${label}-----\n${bytes.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END ${label}-----\n`;

const ECDSA_SHA256 = sequence(oid('2a8648ce3d040302'));
const DAY_MS = 86_400_000;

/** Returns a certificate for `localhost` and 127.0.0.1, and its key. */
export function makeCertificate({ from = Date.now() - DAY_MS, until = Date.now() + DAY_MS, name = 'agent' } = {}) {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const subject = sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(name)))));
  const names = sequence(der(0x82, Buffer.from('localhost')), der(0x87, Buffer.from([127, 0, 0, 1])));
  const extensions = der(0xa3, sequence(sequence(oid('551d11'), der(0x04, names))));
  const serial = der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)]));
  const signed = sequence(
    ...[der(0xa0, der(0x02, Buffer.from([2]))), serial, ECDSA_SHA256, subject],
    ...[sequence(time(new Date(from)), time(new Date(until))), subject],
    ...[publicKey.export({ type: 'spki', format: 'der' }), extensions],
  );
  const signature = sign('sha256', signed, privateKey);
  return {
    cert: pem('CERTIFICATE', sequence(signed, ECDSA_SHA256, der(0x03, Buffer.from([0]), signature))),
    key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
  };
}
