// SM3 and SM2 against the examples of their standards, against OpenSSL where available, and against recorded
// output of it.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fromDer, toDer } from '../../../shared/audit/ecdsa.ts';
import { combine, curve, isOnCurve } from '../../../shared/seal/sm2-curve.ts';
import {
  readSm2Point,
  signSm2,
  sm2PublicKey,
  sm2Z,
  verifySm2,
  writeSm2Point,
} from '../../../shared/seal/sm2-signature.ts';
import { Sm3, sm3 } from '../../../shared/seal/sm3.ts';

const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'));
const hex = (value: Uint8Array) => Buffer.from(value).toString('hex');
const text = (value: string) => new TextEncoder().encode(value);

describe('A15: SM3', () => {
  it.each([
    ['abc', '66c7f0f462eeedd9d1f2d46bdc10e4e24167c4875cf2f7a2297da02b8f4ba8e0'],
    ['abcd'.repeat(16), 'debe9ff92275b8a138604889c18e5a4d6fdb70e5387e5765293dcba39c0c5732'],
  ])('GB/T 32905, annex A: %s', (message, digest) => expect(hex(sm3(text(message)))).toBe(digest));

  it('equals OpenSSL’s at any length and in any pieces', () => {
    for (const length of [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 128, 1_000, 70_000]) {
      const message = randomBytes(length);
      const pieces = new Sm3();
      for (let at = 0; at < length; at += 61) pieces.update(message.subarray(at, at + 61));
      const digest = createHash('sm3').update(message).digest('hex');
      expect([length, hex(sm3(message)), hex(pieces.digest())]).toEqual([length, digest, digest]);
    }
  });
});

describe('A15: SM2, the example of GB/T 32918.5 annex A', () => {
  const d = bytes('3945208f7b2144b13f36e38ac6d39f95889393692860b51a42fb81ef4df7c5b8');
  const k = bytes('59276e27d506861a16680f3ad9c02dccef3cc1fa3cdbe4ce6d54b80deac1bc21');
  const message = text('message digest');
  const point = sm2PublicKey(d);

  it('public key, Z and signature', () => {
    expect(hex(writeSm2Point(point))).toBe(
      '0409f9df311e5421a150dd7d161e4bc5c672179fad1833fc076bb08ff356f35020' +
        'ccea490ce26775a52dc6ea718cc1aa600aed05fbf35e084a6632f6072da9ad13',
    );
    expect(hex(sm2Z(point))).toBe('b2e14c5c79c6df5b85f4fe7ed8db7a262b9da7e07ccb0ea9f4747b8ccda8a4f3');
    expect(hex(signSm2(message, d, () => k))).toBe(
      'f5a03b0648d2c4630eeac513e1bb81a15944da3827d5b74143ac7eaceee720b3' +
        'b1b6aa29df212fd8763182bc0d421ca1bb9038fd1f7f42d4840b69c485bbc1aa',
    );
  });

  it('verifies itself, and nothing that differs in a bit', () => {
    const signature = signSm2(message, d, () => k);
    expect(verifySm2(message, signature, point)).toBe(true);
    for (let bit = 0; bit < 512; bit += 37) {
      const other = signature.slice();
      other[bit >> 3] = (other[bit >> 3] as number) ^ (1 << (bit & 7));
      expect(verifySm2(message, other, point)).toBe(false);
    }
    expect(verifySm2(text('message digesT'), signature, point)).toBe(false);
    expect(verifySm2(message, signature, sm2PublicKey(k))).toBe(false);
    expect(verifySm2(message, signature, point, '')).toBe(false);
    expect(verifySm2(message, signature, { x: point.x, y: point.x })).toBe(false);
    expect(verifySm2(message, new Uint8Array(64), point)).toBe(false);
    expect(verifySm2(message, signature.subarray(1), point)).toBe(false);
    // r + n is the same number to a verifier that does not look.
    const n = bytes(curve.N.toString(16));
    expect(verifySm2(message, new Uint8Array([...signature.subarray(0, 32), ...n]), point)).toBe(false);
  });

  it('refuses a bad random number and a key out of range', () => {
    const drawn = [new Uint8Array(32), bytes(curve.N.toString(16)), k];
    expect(signSm2(message, d, () => drawn.shift() as Uint8Array)).toEqual(signSm2(message, d, () => k));
    const last = bytes((curve.N - 1n).toString(16));
    for (const wrong of [new Uint8Array(32), last, d.subarray(1)])
      expect(() => sm2PublicKey(wrong)).toThrow(RangeError);
  });

  it('the generator’s order is n, and only curve points are read', () => {
    expect(isOnCurve(curve.G)).toBe(true);
    expect(combine({ times: curve.N, point: curve.G })).toBeUndefined();
    const one = combine({ times: curve.N - 1n, point: curve.G });
    expect(one).toEqual({ x: curve.G.x, y: curve.P - curve.G.y });
    const written = writeSm2Point(point);
    expect(readSm2Point(written)).toEqual(point);
    expect(readSm2Point(written.with(64, 0x14) as Uint8Array)).toBeUndefined();
    expect(readSm2Point(written.with(0, 2) as Uint8Array)).toBeUndefined();
  });
});

describe('A15: SM2 and OpenSSL', () => {
  // OpenSSL 3.0.19: `openssl dgst -sm3 -sign … -sigopt distid:1234567812345678` of "a revision".
  const key =
    'MFkwEwYHKoZIzj0CAQYIKoEcz1UBgi0DQgAEO4zlGKM19kziqvkuDUnBD47n4B6v+owT5ui6X4ts3+6oFIQuVrddpTfq6B3ye0ExYPk2MCtY8MGrbCzIKVFOfA==';
  const der = 'MEUCIQDsZfxUxR1+MX1ZFa39bct2wmyhogwJE6Q+oMXcyFyaawIgHy52kxfyNF1JmtRhhQceuDUZygQZQWDkk8Zp+OBDzXY=';

  it('verifies its own signature with the default id only', () => {
    const point = readSm2Point(new Uint8Array(Buffer.from(key, 'base64')).slice(-65));
    const signature = fromDer(new Uint8Array(Buffer.from(der, 'base64')));
    if (!point || !signature) throw new Error('the vector is unreadable');
    expect(verifySm2(text('a revision'), signature, point)).toBe(true);
    expect(verifySm2(text('a revision'), signature, point, '')).toBe(false);
    expect(verifySm2(text('A revision'), signature, point)).toBe(false);
  });

  const version = spawnSync('openssl', ['version'], { encoding: 'utf8' }).stdout ?? '';
  const folder = path.join(mkdtempSync(path.join(os.tmpdir(), 'sm2-')));
  const at = (name: string) => path.join(folder, name);
  const openssl = (...given: string[]) => execFileSync('openssl', given, { cwd: folder });
  beforeAll(() => writeFileSync(at('message'), 'a revision'));
  afterAll(() => rmSync(folder, { recursive: true }));

  it.skipIf(!/^OpenSSL 3/.test(version))('both ways, with the installed OpenSSL 3', () => {
    openssl('ecparam', '-genkey', '-name', 'SM2', '-noout', '-out', 'private');
    openssl('pkey', '-in', 'private', '-pubout', '-out', 'public');
    const id = ['-sigopt', 'distid:1234567812345678'];
    openssl('dgst', '-sm3', '-sign', 'private', ...id, '-out', 'signature', 'message');
    const spki = openssl('pkey', '-in', 'private', '-pubout', '-outform', 'DER');
    const signature = fromDer(new Uint8Array(readFileSync(at('signature'))));
    const point = readSm2Point(new Uint8Array(spki).slice(-65));
    if (!point || !signature) throw new Error('it writes otherwise');
    expect(verifySm2(text('a revision'), signature, point)).toBe(true);

    const shown = openssl('pkey', '-in', 'private', '-text', '-noout').toString();
    const secret = /priv:\s+([0-9a-f:\s]+)pub:/.exec(shown)?.[1]?.replace(/[:\s]/g, '') ?? '';
    const ours = signSm2(text('a revision'), bytes(secret.padStart(64, '0').slice(-64)), () => randomBytes(32));
    writeFileSync(at('ours'), toDer(ours));
    expect(openssl('dgst', '-sm3', '-verify', 'public', '-signature', 'ours', ...id, 'message').toString()).toContain(
      'OK',
    );
  });
});
