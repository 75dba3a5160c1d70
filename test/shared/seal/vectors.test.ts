import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createOpener, createSealer } from '../../../shared/seal/records.ts';
import { agentCounters, edgeCounters, openSealedSession } from '../../../shared/seal/sealed-session.ts';
import { setupRecipient } from '../../../shared/seal/setup.ts';
import {
  decodeHeader,
  deriveSecrets,
  encodeHeader,
  frameKey,
  frameNonce,
  openFrame,
  sealFrame,
} from '../../../shared/seal/sframe.ts';
import { type Suite, suites } from '../../../shared/seal/suites.ts';
import { frameSecrets, pack, sealRecord, setUp } from './independent.ts';
import { aeads } from './node-aead.ts';

const folder = new URL('../../vectors/seal/', import.meta.url);
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const unhex = (text: string) => new Uint8Array(Buffer.from(text, 'hex'));

interface Official {
  header: { kid: string; ctr: string; encoded: string }[];
  sframe: ({ cipher_suite: number; kid: string; ctr: string } & Record<
    'base_key' | 'sframe_key' | 'sframe_salt' | 'metadata' | 'nonce' | 'aad' | 'pt' | 'ct',
    string
  >)[];
}
// Key ids and counters go up to 64 bits, more than a JSON number keeps.
const official: Official = JSON.parse(
  readFileSync(new URL('rfc9605.json', folder), 'utf8').replace(/"(kid|ctr)": *(\d+)/g, '"$1":"$2"'),
);

describe('C5 A21 vectors of RFC 9605', () => {
  it('headers, all of them, both ways', () => {
    expect(official.header.length).toBe(289);
    for (const { kid, ctr, encoded } of official.header) {
      expect(hex(encodeHeader(BigInt(kid), BigInt(ctr)))).toBe(encoded);
      expect(decodeHeader(unhex(`${encoded}00`))).toEqual({
        kid: BigInt(kid),
        counter: BigInt(ctr),
        length: encoded.length / 2,
      });
    }
  });

  it('headers refuse truncated and overlong forms', () => {
    for (const { encoded } of official.header)
      for (let length = 0; length < encoded.length; length += 2)
        expect(decodeHeader(unhex(encoded.slice(0, length)))).toBeUndefined();
    for (const longer of ['0807', '090008', '8007', '90000800', '880708'])
      expect(decodeHeader(unhex(longer))).toBeUndefined();
    expect(() => encodeHeader(2n ** 64n, 0n)).toThrow(RangeError);
  });

  // The official vectors have two GCM suites; the first shows only that our code would be right for it.
  const rows: Record<number, Suite> = {
    4: { ...suites[5], id: 4, name: 'AES_128_GCM_SHA256_128', hash: 'SHA-256', Nh: 32, Nk: 16, openssl: 'aes-128-gcm' },
    5: suites[5],
  };

  it.each(aeads.flatMap(([name, aead]) => [4, 5].map((id) => [name, id, aead] as const)))(
    'encryption with %s, suite %i',
    async (_, id, aead) => {
      const row = rows[id] as Suite;
      const vector = official.sframe.find(({ cipher_suite }) => cipher_suite === id);
      if (!vector) throw new Error('no such vector');
      const [kid, counter] = [BigInt(vector.kid), BigInt(vector.ctr)];
      const secrets = await deriveSecrets(unhex(vector.base_key), row, kid);
      expect([hex(secrets.key), hex(secrets.salt)]).toEqual([vector.sframe_key, vector.sframe_salt]);
      expect(hex(frameNonce(secrets.salt, counter))).toBe(vector.nonce);
      const key = await frameKey(unhex(vector.base_key), row, kid, aead);
      const frame = await sealFrame(key, counter, unhex(vector.metadata), unhex(vector.pt));
      expect(hex(frame)).toBe(vector.ct);
      const header = decodeHeader(frame);
      if (!header) throw new Error('no header');
      const opened = await openFrame(key, header, unhex(vector.metadata), frame);
      expect(opened && hex(opened)).toBe(vector.pt);
    },
  );
});

const inputs = {
  suite: 5,
  recipient: hex(new Uint8Array(32).map((_, at) => at + 1)),
  ephemeral: hex(new Uint8Array(32).map((_, at) => 0x40 + at)),
  attestation: 'eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ0ZXN0In0.c2ln',
  ticket: 'eyJhbGciOiJFUzI1NiJ9.eyJqdGkiOiJvbmUifQ.c2ln',
};
/** [direction, final, plaintext as text, times it is repeated] */
const messages = [
  ['request', false, '{"v":1}', 1],
  ['request', false, 'sound', 20],
  ['request', true, '', 1],
  ['answer', false, '{"type":"keepalive"}', 1],
  ['answer', true, '{"type":"refusal","reason":"audio_empty"}', 1],
] as const;

function computed() {
  const keys = setUp(inputs);
  const next = { request: 0, answer: 0 };
  const records = messages.map(([direction, final, text, times]) => {
    const plaintext = Buffer.from(text.repeat(times));
    const counter = next[direction]++;
    const record = hex(sealRecord(keys[direction], counter, final ? 1 : 0, plaintext));
    return { direction, counter, final, plaintext: hex(plaintext), record };
  });
  const { key, salt } = frameSecrets(keys.request);
  return {
    ...inputs,
    publicKey: hex(keys.publicKey),
    enc: hex(keys.enc),
    info: hex(keys.info),
    requestBaseKey: hex(keys.request),
    answerBaseKey: hex(keys.answer),
    requestFrameKey: hex(key),
    requestFrameSalt: hex(salt),
    records,
  };
}

describe('C5 A21 vectors of this profile', () => {
  const file = new URL('v1.json', folder);
  // Set once to write the file after a new version of the profile was written down.
  if (process.env.WRITE_VECTORS) writeFileSync(file, `${JSON.stringify(computed(), undefined, 2)}\n`);
  const vectors: ReturnType<typeof computed> = JSON.parse(readFileSync(file, 'utf8'));

  it('match the two RFCs', () => {
    expect(computed()).toEqual(vectors);
  });

  it('give our recipient the same keys', async () => {
    const setup = await setupRecipient(
      await recipientKey(vectors.publicKey),
      unhex(vectors.enc),
      5,
      vectors.attestation,
    );
    if (!setup.ok) throw new Error('refused');
    const keys = await setup.value.keysFor(vectors.ticket);
    expect([hex(keys.request), hex(keys.answer)]).toEqual([vectors.requestBaseKey, vectors.answerBaseKey]);
    const frame = await deriveSecrets(keys.request, suites[5], 0n);
    expect([hex(frame.key), hex(frame.salt)]).toEqual([vectors.requestFrameKey, vectors.requestFrameSalt]);
  });

  it.each(aeads)('seal and open to the same bytes with %s', async (_, aead) => {
    for (const direction of ['request', 'answer'] as const) {
      const baseKey = unhex(vectors[`${direction}BaseKey`]);
      const sealer = await createSealer(baseKey, 5, aead);
      const opener = await createOpener(baseKey, 5, aead);
      for (const { final, plaintext, record } of vectors.records.filter((row) => row.direction === direction)) {
        expect(hex(await sealer.seal(unhex(plaintext), final))).toBe(record);
        for await (const opened of opener.open(unhex(record)))
          expect(opened.ok && { plaintext: hex(opened.value.plaintext), final: opened.value.final }).toEqual({
            plaintext,
            final,
          });
      }
      expect(opener.finished()).toBe(true);
    }
  });
});

/** [direction, counter within the request, flag, messages] */
const laneMessages = [
  ['request', 0, 2, ['{"jti":"one.1"}', '{"v":1}']],
  ['request', 1, 1, ['sound']],
  ['answer', 0, 3, ['{"type":"ready"}', '{"type":"final"}']],
] as const;
const laneNumber = 700;

function computedLane() {
  const { lane } = setUp(inputs);
  const records = laneMessages.map(([direction, at, flag, texts]) => {
    const plaintext = flag & 2 ? pack(texts) : Buffer.from(texts.join(''));
    return {
      direction,
      at,
      flag,
      messages: texts,
      record: hex(sealRecord(lane[direction], laneNumber * 2 ** 24 + at, flag, plaintext)),
    };
  });
  return { number: laneNumber, requestBaseKey: hex(lane.request), answerBaseKey: hex(lane.answer), records };
}

describe('C5 A21 vectors of lanes', () => {
  const file = new URL('lane.json', folder);
  if (process.env.WRITE_VECTORS) writeFileSync(file, `${JSON.stringify(computedLane(), undefined, 2)}\n`);
  const vectors: ReturnType<typeof computedLane> = JSON.parse(readFileSync(file, 'utf8'));
  const { enc, publicKey } = setUp(inputs);

  it('match the two RFCs', () => {
    expect(computedLane()).toEqual(vectors);
  });

  it.each(aeads)('our agent opens, and seals to the same bytes, with %s', async (_, aead) => {
    const setup = await setupRecipient(await recipientKey(hex(publicKey)), enc, 5, inputs.attestation);
    if (!setup.ok) throw new Error('refused');
    const keys = await setup.value.laneKeysFor(inputs.ticket);
    expect([hex(keys.request), hex(keys.answer)]).toEqual([vectors.requestBaseKey, vectors.answerBaseKey]);
    const lane = await openSealedSession(setup.value, inputs.ticket, aead);
    const [agent, caller] = [agentCounters(lane, vectors.number), edgeCounters(lane, vectors.number)];
    for (const { direction, flag, messages: texts, record } of vectors.records) {
      const [{ sealer }, { opener }] = direction === 'request' ? [caller, agent] : [agent, caller];
      const plaintexts = texts.map((text) => Buffer.from(text));
      const final = (flag & 1) === 1;
      const sealed = flag & 2 ? sealer.pack(plaintexts, final) : sealer.seal(Buffer.concat(plaintexts), final);
      expect(hex(await sealed)).toBe(record);
      const opened = await opener.openWhole(unhex(record));
      expect(opened.ok && opened.value.map(({ plaintext }) => Buffer.from(plaintext).toString())).toEqual(texts);
    }
    expect(agent.opener.finished() && caller.opener.finished()).toBe(true);
  });
});

async function recipientKey(publicKey: string): Promise<CryptoKeyPair> {
  const point = unhex(publicKey);
  const base64url = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url');
  const publicJwk = { kty: 'EC', crv: 'P-256', x: base64url(point.slice(1, 33)), y: base64url(point.slice(33)) };
  const privateJwk = { ...publicJwk, d: base64url(unhex(inputs.recipient)) };
  const algorithm = { name: 'ECDH', namedCurve: 'P-256' };
  return {
    publicKey: await crypto.subtle.importKey('jwk', publicJwk, algorithm, true, []),
    privateKey: await crypto.subtle.importKey('jwk', privateJwk, algorithm, false, ['deriveBits']),
  };
}
