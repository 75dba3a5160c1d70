// Signatures of models: what they bind, and changes that they reject.
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { fromBase64, toBase64 } from '../../../shared/base64.ts';
import { digestOfFiles } from '../../../shared/registry/revision.ts';
import { type Bundle, makeBundle, openBundle } from '../../../shared/registry/signature-bundle.ts';
import { envelope, openEnvelope, signPayload } from '../../../shared/registry/signature-envelope.ts';
import {
  algorithmOf,
  hintOf,
  openSm2Key,
  type SignerKey,
  type SigningKey,
  signerKey,
} from '../../../shared/registry/signature-key.ts';
import { readManifest, writeManifest } from '../../../shared/registry/signature-manifest.ts';
import { type Files, verifyFiles } from '../../../shared/registry/verify-files.ts';
import { makeP256 } from './people.ts';

const text = (value: string) => new TextEncoder().encode(value);
const hashOf = (name: string, content: Uint8Array) => createHash(name).update(content).digest('hex');

const p256 = makeP256;

const keyOf = (name: string, key: SigningKey): SignerKey => ({ name, key: toBase64(key.publicKey) });

const contents: Record<string, Uint8Array> = {
  'config.pbtxt': text('name: "reference-en"'),
  '1/model.onnx': randomBytes(5_000),
  '1/empty': new Uint8Array(0),
};

function inMemory(files: Record<string, Uint8Array>, chunk = 777): Files {
  return {
    list: async () => Object.keys(files),
    async *open(file) {
      const content = files[file] as Uint8Array;
      for (let at = 0; at < content.length; at += chunk) yield content.subarray(at, at + chunk);
    },
    hash: (name) => {
      const made = createHash(name);
      return { update: (bytes) => made.update(bytes), finish: () => made.digest('hex') };
    },
  };
}

const revisionOf = (files: Record<string, Uint8Array>) =>
  digestOfFiles(Object.entries(files).map(([name, content]) => ({ name, digest: hashOf('sha256', content) })));

function statementOf(files: Record<string, Uint8Array>, hash: 'sha256' | 'sm3') {
  const digests = Object.entries(files).map(([name, content]) => ({ name, digest: hashOf(hash, content) }));
  return writeManifest({ name: 'reference-en', hash, files: digests, revision: revisionOf(files) });
}

const suites = [
  ['P-256 and SHA-256', 'sha256', () => p256()],
  ['SM2 and SM3', 'sm3', async () => openSm2Key(randomBytes(32).with(0, 1))],
] as const;

describe.each(suites)('A15: %s', (_, hash, makeKey) => {
  let key: SigningKey;
  let keys: SignerKey[];
  let bundle: Bundle;
  beforeAll(async () => {
    key = await makeKey();
    keys = [keyOf('ann', key)];
    bundle = makeBundle(await signPayload(statementOf(contents, hash), key));
  });

  const open = async () => {
    const opened = await openBundle(bundle, keys);
    if (!opened.ok) throw new Error(JSON.stringify(opened.refusal));
    return opened.value;
  };

  it('returns the signer, and the files’ digests give the revision', async () => {
    const { signer, manifest } = await open();
    expect(signer).toBe('ann');
    const found = await verifyFiles(manifest, inMemory({ ...contents, 'model.sig': text('itself') }));
    expect(found).toEqual({ ok: true, value: { revision: revisionOf(contents), bytes: 5_020 } });
  });

  it.each([
    ['a changed file', { ...contents, 'config.pbtxt': text('name: "reference-de"') }],
    ['a longer one', { ...contents, '1/empty': text('x') }],
    ['a shorter one', { ...contents, 'config.pbtxt': text('name') }],
    ['one too many', { ...contents, '1/model.py': text('import os') }],
    ['one too few', { 'config.pbtxt': contents['config.pbtxt'] as Uint8Array }],
  ])('refuses %s', async (_name, files) => {
    const { manifest } = await open();
    expect(await verifyFiles(manifest, inMemory(files))).toMatchObject({ refusal: { reason: 'signature_invalid' } });
  });

  it('refuses another key, a changed payload and a changed signature', async () => {
    const stranger = [keyOf('eve', await makeKey())];
    const [{ sig }] = bundle.dsseEnvelope.signatures as [{ keyid: string; sig: string }];
    const payload = toBase64(text(atob(bundle.dsseEnvelope.payload).replace('reference-en', 'reference-xx')));
    const der = fromBase64(sig) as Uint8Array;
    const bent = toBase64(der.with(der.length - 1, (der.at(-1) as number) ^ 1) as Uint8Array);
    const tries: [unknown, SignerKey[]][] = [
      [bundle, stranger],
      [bundle, []],
      [{ ...bundle, dsseEnvelope: { ...bundle.dsseEnvelope, payload } }, keys],
      [{ ...bundle, dsseEnvelope: { ...bundle.dsseEnvelope, signatures: [{ keyid: '', sig: bent }] } }, keys],
      [{ ...bundle, mediaType: 'application/vnd.dev.sigstore.bundle+json;version=0.2' }, keys],
    ];
    for (const [sent, known] of tries)
      expect(await openBundle(sent, known)).toMatchObject({ refusal: { reason: 'signature_invalid' } });
  });

  it('refuses digests of the other family', async () => {
    const other = hash === 'sha256' ? 'sm3' : 'sha256';
    const crossed = makeBundle(await signPayload(statementOf(contents, other), key));
    expect(await openBundle(crossed, keys)).toMatchObject({ refusal: { reason: 'signature_invalid' } });
  });
});

describe('A15: signatures of other tools', () => {
  // `model_signing sign key` 1.1.1 on four small files, and the key that it was made with.
  const key =
    'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEB33nbJeuvaCfLp/zDn42y2epGZzPkuooItL499yePVgChLPOkYe6jEZOvfWwdRB4mpvqhoBTLL34OHbGz/usbw==';
  const signed = JSON.parse(
    readFileSync(path.join(import.meta.dirname, '../../vectors/model/openssf-1.1.1.sig'), 'utf8'),
  );

  it('a bundle of OpenSSF’s tool opens with its key, and files verify', async () => {
    const opened = await openBundle(signed, [{ name: 'ann', key }]);
    if (!opened.ok) throw new Error(JSON.stringify(opened.refusal));
    const files = { 'a/b/x.onnx': text('hello'), 'a-b/y': text('zz'), 'config.pbtxt': text('cfg'), empty: text('x') };
    const found = await verifyFiles(opened.value.manifest, inMemory({ ...files, 'model.sig': text('') }));
    expect(found).toMatchObject({ ok: true, value: { revision: revisionOf(files) } });
    expect((await verifyFiles(opened.value.manifest, inMemory({ ...files, empty: text('y') }))).ok).toBe(false);
  });

  it('a key’s hint equals the signed one', () => {
    expect(hintOf(fromBase64(key) as Uint8Array)).toBe(signed.verificationMaterial.publicKey.hint);
  });
});

describe('A15: a file of 500 MB', { timeout: 20_000 }, () => {
  const SIZE = 500_000_000;
  const CHUNK = new Uint8Array(1 << 20).fill(0x5a);

  /** Generates a file while it is read. `last` is XORed into its last byte. */
  async function* generate(last: number): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < SIZE; at += CHUNK.length) {
      const end = Math.min(CHUNK.length, SIZE - at);
      yield at + end === SIZE ? CHUNK.slice(0, end).with(end - 1, 0x5a ^ last) : CHUNK.subarray(0, end);
    }
  }
  const files = (last: number): Files => ({
    ...inMemory({}),
    list: async () => ['net.onnx'],
    open: () => generate(last),
  });

  it('detects a flipped last bit without buffering the file', async () => {
    const made = createHash('sha256');
    for await (const chunk of generate(0)) made.update(chunk);
    const manifest = readManifest(
      JSON.parse(
        new TextDecoder().decode(
          writeManifest({
            name: 'm',
            hash: 'sha256',
            files: [{ name: 'net.onnx', digest: made.digest('hex') }],
            revision: `sha256:${'0'.repeat(64)}`,
          }),
        ),
      ),
    );
    if (!manifest) throw new Error('no manifest');
    const whole = { ...manifest, revision: undefined };
    const before = process.memoryUsage();
    expect(await verifyFiles(whole, files(0))).toMatchObject({ ok: true, value: { bytes: SIZE } });
    expect(await verifyFiles(whole, files(1))).toMatchObject({ ok: false });
    const after = process.memoryUsage();
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(64 * CHUNK.length);
  });
});

describe('A15: invalid statements', () => {
  const good = () => JSON.parse(new TextDecoder().decode(statementOf(contents, 'sha256')));
  const shards = (names: string[]) => {
    const made = good();
    const digest = hashOf('sha256', text('x'));
    made.predicate.serialization = { method: 'shards', hash_type: 'sha256', shard_size: 10, allow_symlinks: false };
    made.predicate.resources = names.map((name) => ({ name, algorithm: 'sha256', digest }));
    made.subject[0].digest.sha256 = hashOf('sha256', Buffer.concat(names.map(() => Buffer.from(digest, 'hex'))));
    return made;
  };

  it('files outside the folder, a wrong root, two subjects, another predicate', () => {
    expect(readManifest(good())).toBeDefined();
    const changes: ((made: ReturnType<typeof good>) => unknown)[] = [
      (made) => (made.predicate.resources[0].name = '../config.pbtxt'),
      (made) => (made.predicate.resources[0].name = '/etc/passwd'),
      (made) => (made.predicate.resources[0].digest = '0'.repeat(64)),
      (made) => made.predicate.resources.pop(),
      (made) => made.subject.push(made.subject[0]),
      (made) => (made.predicateType = 'https://model_signing/Digests/v0.1'),
      (made) => (made.predicate.resources[1].name = made.predicate.resources[0].name),
    ];
    for (const change of changes) {
      const made = good();
      change(made);
      expect(readManifest(made)).toBeUndefined();
    }
  });

  it('shards with a hole, twice, or out of their order', () => {
    expect(readManifest(shards(['a:0:10', 'a:10:12', 'b:0:3']))).toBeDefined();
    for (const names of [['a:0:10', 'a:11:12'], ['a:1:10'], ['a:0:10', 'a:0:10'], ['a:10:12', 'a:0:10'], ['a']])
      expect(readManifest(shards(names))).toBeUndefined();
  });

  it('shards are checked one by one for any read sizes', async () => {
    const content = randomBytes(25);
    const made = shards(['a:0:10', 'a:10:20', 'a:20:25']);
    const digests = [0, 10, 20].map((at) => hashOf('sha256', content.subarray(at, at + 10)));
    for (const [at, digest] of digests.entries()) made.predicate.resources[at].digest = digest;
    made.subject[0].digest.sha256 = hashOf('sha256', Buffer.from(digests.join(''), 'hex'));
    made.predicate.revision = revisionOf({ a: content });
    const manifest = readManifest(made);
    if (!manifest) throw new Error('no manifest');
    for (const chunk of [1, 7, 10, 100])
      expect((await verifyFiles(manifest, inMemory({ a: content }, chunk))).ok).toBe(true);
    for (const other of [
      content.with(24, (content[24] as number) ^ 1),
      content.subarray(0, 20),
      Buffer.concat([content, content]),
    ])
      expect((await verifyFiles(manifest, inMemory({ a: new Uint8Array(other) }, 7))).ok).toBe(false);
  });
});

describe('C7: envelopes of several signers', () => {
  it('lists each once, and nothing with an unknown one', async () => {
    const [ann, bob] = [await p256(), openSm2Key(randomBytes(32).with(0, 2))];
    const keys = [keyOf('ann', ann), keyOf('bob', bob)];
    const payload = text('{}');
    const [one, two] = [await signPayload(payload, ann), await signPayload(payload, bob)];
    const both = envelope.parse({ ...one, signatures: [...one.signatures, ...two.signatures, ...one.signatures] });
    expect((await openEnvelope(both, keys))?.signers).toEqual(['ann', 'bob']);
    expect(await openEnvelope(both, keys.slice(0, 1))).toBeUndefined();
  });

  it('keys are read as P-256 or SM2, and as nothing else', () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 }).publicKey.export({ format: 'der', type: 'spki' });
    expect(algorithmOf(new Uint8Array(rsa))).toBeUndefined();
    const ed = generateKeyPairSync('ed25519').publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
    expect(signerKey.safeParse({ name: 'ann', key: ed }).success).toBe(false);
    const { publicKey } = openSm2Key(randomBytes(32).with(0, 3));
    expect(algorithmOf(publicKey)).toBe('sm2');
    expect(algorithmOf(publicKey.with(80, (publicKey[80] as number) ^ 1) as Uint8Array)).toBeUndefined();
  });
});
