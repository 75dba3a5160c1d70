import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { cosigner, openCosignatureVerifier, timeOfCosignature } from '../../../shared/audit/cosignature.ts';
import { openP256Key, openP256Verifier, p256Signer } from '../../../shared/audit/ecdsa.ts';
import { openNote, openSigningKey, openVerifier, signNote } from '../../../shared/audit/note.ts';
import { formatNoteKey, openNoteKey, readNoteKey } from '../../../shared/audit/note-key.ts';
import { fromBase64, toBase64 } from '../../../shared/base64.ts';
import { concat } from '../../../shared/bytes.ts';
import notes from '../../vectors/audit/notes.json' with { type: 'json' };

const bytes = (text: string) => new TextEncoder().encode(text);
const text = 'audit.example/eu/2026\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n';

async function vault() {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const written = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
  const key = await openP256Key(written);
  if (!key) throw new Error('no key');
  return { key, privateKey };
}

describe('C9 ECDSA P-256 in signed notes', () => {
  it.each(notes.ecdsa)('reads notes that a public log signed: $vkey', async ({ vkey, note }) => {
    const key = readNoteKey(vkey);
    expect(key?.type).toBe('p256');
    if (!key) return;
    expect(formatNoteKey(key)).toBe(vkey);
    const verifier = await openNoteKey(key);
    expect((await openNote(bytes(note), [verifier]))?.signers).toEqual([key.name]);
    const other = note.replace(/\d{2}\n/, (digits) => `${digits.slice(0, -1)}1\n`);
    expect(await openNote(bytes(other), [verifier])).toBeUndefined();
  });

  it('reads a key as PKCS #8 and JSON Web Key only', async () => {
    const { key, privateKey } = await vault();
    const jwk = await openP256Key(JSON.stringify(privateKey.export({ format: 'jwk' })));
    expect(jwk?.publicKey).toEqual(key.publicKey);
    const other = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey;
    const none = ['', '{}', '{', 'AAAA', other.export({ format: 'der', type: 'pkcs8' }).toString('base64')];
    for (const one of none) expect(await openP256Key(one), one).toBeUndefined();
  });

  it('writes any two numbers in OpenSSL’s DER, and reads nothing else', async () => {
    const { key } = await vault();
    const verifier = await openP256Verifier('log', key.publicKey);
    for (let round = 0; round < 40; round += 1) {
      const message = bytes(`${round}`);
      const signature = await p256Signer(key, 'log').sign(message);
      const { createPublicKey, verify } = await import('node:crypto');
      const spki = createPublicKey({ key: Buffer.from(key.publicKey), format: 'der', type: 'spki' });
      expect(verify('sha256', message, spki, signature)).toBe(true);
      expect(await verifier.verify(message, signature)).toBe(true);
      const [longer, shorter] = [concat(signature, Uint8Array.of(0)), signature.slice(0, -1)];
      const long = concat(Uint8Array.of(0x30, 0x81), signature.subarray(1));
      for (const broken of [longer, shorter, long, new Uint8Array(), Uint8Array.of(0x30, 0)]) {
        expect(await verifier.verify(message, broken)).toBe(false);
      }
    }
  });
});

describe('C9 one note, several keys', () => {
  it('a log signs with both keys; one suffices, and none may be wrong', async () => {
    const [ed, { key }] = [await openSigningKey(new Uint8Array(32).fill(3)), await vault()];
    const name = 'audit.example/eu/2026';
    const note = await signNote(text, [ed.signer(name), p256Signer(key, name)]);
    const [first, second] = [await openVerifier(name, ed.publicKey), await openP256Verifier(name, key.publicKey)];
    for (const verifiers of [[first], [second], [second, first]]) {
      const opened = await openNote(bytes(note), verifiers);
      expect(opened?.signers).toEqual([name]);
      expect(opened?.good).toHaveLength(verifiers.length);
    }
    const lines = note.split('\n');
    const broken = (line: number) =>
      bytes(lines.map((one, at) => (at === line ? one.replace(/.{6}=*$/, 'AAAAAA==') : one)).join('\n'));
    for (const line of [4, 5]) expect(await openNote(broken(line), [first, second])).toBeUndefined();
    // A signature by an unknown key is ignored.
    expect(await openNote(bytes(lines.toSpliced(5, 1, `— ${name} AAAAAAAA`).join('\n')), [first])).toBeDefined();
  });

  it('a note may have 16 signatures and more', async () => {
    const keys = await Promise.all(
      Array.from({ length: 20 }, async (_, at) => ({
        name: `k${at}`,
        key: await openSigningKey(new Uint8Array(32).fill(at)),
      })),
    );
    const note = await signNote(
      text,
      keys.map(({ name, key }) => key.signer(name)),
    );
    const verifiers = await Promise.all(keys.map(({ name, key }) => openVerifier(name, key.publicKey)));
    expect((await openNote(bytes(note), verifiers))?.signers).toHaveLength(20);
  });
});

describe('C9 cosignatures', () => {
  const seconds = 1_679_315_147;

  async function witness() {
    const { publicKey, signer } = await openSigningKey(new Uint8Array(32).fill(9));
    const name = 'witness.example/w1';
    const sign = cosigner(name, { publicKey, sign: signer(name).sign }, () => seconds);
    return { name, publicKey, sign, raw: signer(name) };
  }

  it('C2SP tlog-cosignature: an Ed25519 signature over the lines of the specification', async () => {
    const { name, publicKey, sign } = await witness();
    const signature = await sign.sign(bytes(text));
    expect(signature).toHaveLength(72);
    expect(timeOfCosignature(signature)).toBe(seconds);
    // OpenSSL verifies the exact message of the specification.
    const { createPublicKey, verify } = await import('node:crypto');
    const x = Buffer.from(publicKey).toString('base64url');
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    expect(verify(null, bytes(`cosignature/v1\ntime 1679315147\n${text}`), key, signature.subarray(8))).toBe(true);
    const verifier = await openCosignatureVerifier(name, publicKey);
    expect((await openNote(bytes(await signNote(text, [sign])), [verifier]))?.signers).toEqual([name]);
  });

  it('rejects another time, another text, no time, and a log’s signature', async () => {
    const { name, publicKey, sign, raw } = await witness();
    const verifier = await openCosignatureVerifier(name, publicKey);
    const signature = await sign.sign(bytes(text));
    const later = signature.slice();
    later[7] = (later[7] as number) ^ 1;
    const zero = concat(new Uint8Array(8), signature.slice(8));
    const plain = concat(signature.slice(0, 8), await raw.sign(bytes(text)));
    for (const wrong of [later, zero, plain, signature.slice(8)]) {
      expect(await verifier.verify(bytes(text), wrong)).toBe(false);
    }
    expect(await verifier.verify(bytes(`${text}x\n`), signature)).toBe(false);
    // The same key as a log key has another id: neither passes for the other.
    expect(toBase64(sign.keyId)).not.toBe(toBase64(raw.keyId));
  });
});

describe('C9 verifier keys', () => {
  it('are read in the one way in which they are written', async () => {
    const { publicKey } = await openSigningKey(new Uint8Array(32).fill(9));
    for (const type of ['ed25519', 'cosignature'] as const) {
      const written = formatNoteKey({ type, name: 'witness.example/w1', publicKey });
      expect(readNoteKey(written)).toEqual({ type, name: 'witness.example/w1', publicKey });
      const [name, id, key = ''] = written.split('+', 2).concat(written.split('+').slice(2).join('+'));
      const loose = [`${name}+${id?.toUpperCase()}A+${key}`, `${name}+${id}+${key}=`];
      const wrong = [...loose, `+${id}+${key}`, `a b+${id}+${key}`, `${name}+${id}`, '', written.slice(0, -8)];
      for (const one of wrong) expect(readNoteKey(one), one).toBeUndefined();
    }
    // ML-DSA-44, which this code does not support.
    const unknown = concat(Uint8Array.of(6), new Uint8Array(1_312));
    expect(readNoteKey(`w+00000000+${toBase64(unknown)}`)).toBeUndefined();
    expect(fromBase64('AB==')).toBeUndefined();
  });
});
