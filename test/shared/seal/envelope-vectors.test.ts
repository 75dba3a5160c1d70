import { createECDH, createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readHead, unwrapHead } from '../../../shared/seal/envelope.ts';
import { openSmall, sealRecords } from '../../../shared/seal/envelope-stream.ts';
import { unwrap } from '../../../shared/seal/wrap.ts';
import { importZoneKey, zoneKeyId } from '../../../shared/seal/zone-key.ts';
import { type FileInputs, sealBase, sealFile } from './independent-file.ts';
import { aeads } from './node-aead.ts';

const file = new URL('../../vectors/seal/envelope.json', import.meta.url);
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const unhex = (text: string) => new Uint8Array(Buffer.from(text, 'hex'));

const zone = hex(new Uint8Array(32).map((_, at) => 0x61 + at));
const point = (() => {
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(Buffer.from(zone, 'hex'));
  return ecdh.getPublicKey();
})();
const [x, y] = [point.subarray(1, 33).toString('base64url'), point.subarray(33).toString('base64url')];
// RFC 7638 §3: the members in this order, no spaces.
const thumbprint = createHash('sha256').update(`{"crv":"P-256","kty":"EC","x":"${x}","y":"${y}"}`).digest('base64url');

const inputs: FileInputs = {
  zone,
  ephemeral: hex(new Uint8Array(32).map((_, at) => 0x21 + at)),
  key: thumbprint,
  baseKey: hex(new Uint8Array(64).map((_, at) => at)),
  tenant: 'dev',
  upload: '01890a5d-ac96-774b-bcce-b302099a8057',
  name: 'upload',
};
const segments = ['RIFF', 'sound'.repeat(20), ''].map((text) => Buffer.from(text));

function computed() {
  const { info, aad, enc, wrapped, head, records } = sealFile(inputs, segments);
  return {
    ...inputs,
    publicKey: hex(point),
    info: hex(info),
    aad: hex(aad),
    enc: hex(enc),
    wrapped: hex(wrapped),
    head: head.toString('latin1'),
    record0: hex(records[0] as Buffer),
    record1: hex(records[1] as Buffer),
    record2: hex(records[2] as Buffer),
  };
}

describe('C5 A21 T4 vectors of sealed files', () => {
  // Set once to write the file after a new version of the profile was written down.
  if (process.env.WRITE_VECTORS) writeFileSync(file, `${JSON.stringify(computed(), undefined, 2)}\n`);
  const vectors: ReturnType<typeof computed> = JSON.parse(readFileSync(file, 'utf8'));
  const expected = { tenant: vectors.tenant, upload: vectors.upload, name: vectors.name };
  const privateKey = () =>
    importZoneKey({ kty: 'EC', crv: 'P-256', x, y, d: Buffer.from(zone, 'hex').toString('base64url') });

  it('match the two RFCs', () => {
    expect(computed()).toEqual(vectors);
  });

  it('give us the same key, its id and the same plaintext', async () => {
    expect(await zoneKeyId({ kty: 'EC', crv: 'P-256', x, y })).toBe(vectors.key);
    const start = Buffer.from(vectors.head, 'latin1');
    const head = readHead(start);
    if (!head.ok) throw new Error('no head');
    expect(head.value).toMatchObject({ length: start.length, head: expected });
    const own = await privateKey();
    const baseKey = await unwrapHead(head.value.head, expected, () => own);
    expect(baseKey.ok && hex(baseKey.value)).toBe(vectors.baseKey);
    const whole = Buffer.concat([start, ...[vectors.record0, vectors.record1, vectors.record2].map(unhex)]);
    const opened = await openSmall(new Blob([whole]).stream(), { expected, known: () => own }, 1_000);
    expect(opened.ok && Buffer.from(opened.value).equals(Buffer.concat(segments))).toBe(true);
  });

  it.each(aeads)('seal to the same records with %s', async (_, aead) => {
    const sealer = await sealRecords({ baseKey: unhex(vectors.baseKey), suite: 5 }, 0, aead);
    const records = [];
    for (const [at, plain] of segments.entries()) records.push(hex(await sealer.seal(plain, at === 2)));
    expect(records).toEqual([vectors.record0, vectors.record1, vectors.record2]);
  });

  it('one message opens with an independent implementation', async () => {
    const binding = { info: Buffer.from('auricle zone key 1'), aad: Buffer.from('request') };
    const box = sealBase(zone, inputs.ephemeral, binding.info, binding.aad, Buffer.from('{"keys":[]}'));
    const opened = await unwrap(await privateKey(), box, binding);
    expect(opened && Buffer.from(opened).toString()).toBe('{"keys":[]}');
    expect(await unwrap(await privateKey(), box, { ...binding, aad: Buffer.from('another') })).toBeUndefined();
  });
});
