import { createDecipheriv } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CipherName } from '../../../infra/pool/model-build/archive/cipher.ts';
import { readKey, splitNamed } from '../../../infra/pool/model-build/archive/key-reference.ts';
import type { Head } from '../../../infra/pool/model-build/archive/manifest.ts';
import { openArchive } from '../../../infra/pool/model-build/archive/open-archive.ts';
import { writeArchive } from '../../../infra/pool/model-build/archive/write-archive.ts';
import { folderForTest } from '../local/folder.ts';

const utf8 = new TextEncoder();
const head: Head = {
  format: 'auricle-archive/1',
  kind: 'model',
  name: 'tiny',
  classes: ['Tiny'],
  graphs: [],
  flows: [],
  settings: { language_code: 'en-US' },
  parts: { vocabulary: 'tokens.txt' },
};
const network = Uint8Array.from({ length: 70_000 }, (_, at) => (at * 31) & 255);
const sources = [
  { name: 'tokens.txt', content: utf8.encode('a\nb\n') },
  { name: 'network/model.onnx', content: network },
];

const write = (file: string, key?: string, cipher: CipherName = 'aes-256-gcm', force = false, plain?: string[]) =>
  writeArchive(
    file,
    { head, sources, ...(key && { key: { cipher, bytes: utf8.encode(key) } }), ...(plain && { plain }) },
    force,
  );

async function contentOf(named: string, name = 'network/model.onnx') {
  const archive = await openArchive(named, {});
  if (!archive.ok) return archive.refusal.kind;
  const read = await archive.value.read(name);
  await archive.value.close();
  return read.ok ? Buffer.from(read.value) : read.refusal.kind;
}

describe('M1 M2 archives', () => {
  it.each([undefined, 'aes-256-gcm', 'sm4-ctr-hmac-sm3'] as const)(
    'sealed with %s: the same bytes each time, the same artifacts out',
    async (cipher) => {
      const folder = folderForTest();
      const [one, two] = [path.join(folder, 'a.amodel'), path.join(folder, 'b.amodel')];
      for (const file of [one, two]) expect((await write(file, cipher && 'tlt_encode', cipher)).ok).toBe(true);
      expect(readFileSync(one).equals(readFileSync(two))).toBe(true);
      expect(await contentOf(cipher ? `${one}:tlt_encode` : one)).toEqual(Buffer.from(network));
      expect(readFileSync(one).includes(Buffer.from(network.subarray(0, 1000)))).toBe(cipher === undefined);
      expect(readdirSync(folder).sort()).toEqual(['a.amodel', 'b.amodel']);
    },
  );

  it('another key, another head: other bytes all through', async () => {
    const folder = folderForTest();
    const sealedOf = async (name: string, key: string) => {
      await write(path.join(folder, name), key);
      return readFileSync(path.join(folder, name)).subarray(8192, 60_000);
    };
    const first = await sealedOf('a', 'one');
    expect((await sealedOf('b', 'two')).equals(first)).toBe(false);
  });

  it('is a tar that any tar reads, owners and times left out', async () => {
    const folder = folderForTest();
    await write(path.join(folder, 'a.amodel'));
    const { execFileSync } = await import('node:child_process');
    const listed = execFileSync('tar', ['-tvf', path.join(folder, 'a.amodel')], { env: { ...process.env, TZ: 'UTC' } });
    const lines = listed.toString().trim().split('\n');
    expect(lines.map((line) => line.split(' ').at(-1))).toEqual([
      'auricle-archive.json',
      'auricle-archive.sha256',
      'artifacts/network/model.onnx',
      'artifacts/tokens.txt',
    ]);
    expect(lines.every((line) => line.includes('1970-01-01'))).toBe(true);
  });

  it('distinguishes a wrong key, a missing key and a superfluous key', async () => {
    const file = path.join(folderForTest(), 'a.amodel');
    await write(file, 'right');
    expect(await contentOf(`${file}:wrong`)).toBe('key');
    expect(await contentOf(file)).toBe('keyless');
    expect(await contentOf(`${file}:env:NOT_SET_ANYWHERE`)).toBe('keyless');
    expect(await contentOf(`${file}:kv://vault/secret`)).toBe('unsupported');
    await write(file, undefined, 'aes-256-gcm', true);
    expect(await contentOf(`${file}:right`)).toEqual(Buffer.from(network));
  });

  it('seals one artifact and leaves another readable', async () => {
    const file = path.join(folderForTest(), 'a.amodel');
    await write(file, 'key', 'sm4-ctr-hmac-sm3', false, ['tokens.txt']);
    expect(await contentOf(file, 'tokens.txt')).toEqual(Buffer.from('a\nb\n'));
    expect(await contentOf(file)).toBe('keyless');
  });

  it.each([undefined, 'aes-256-gcm', 'sm4-ctr-hmac-sm3'] as const)(
    'sealed with %s: no byte can be changed unnoticed',
    async (cipher) => {
      const file = path.join(folderForTest(), 'a.amodel');
      await writeArchive(
        file,
        {
          head,
          sources: [{ name: 'tokens.txt', content: utf8.encode('abc') }],
          ...(cipher && { key: { cipher, bytes: utf8.encode('key') } }),
        },
        false,
      );
      const whole = readFileSync(file);
      // A prime step meets every field; each key costs a tenth of a second.
      const step = cipher ? 1009 : 31;
      for (let at = 0; at < whole.length; at += step) {
        const changed = Buffer.from(whole);
        changed[at] = (changed[at] ?? 0) ^ 1;
        writeFileSync(file, changed);
        const got = await contentOf(cipher ? `${file}:key` : file, 'tokens.txt');
        expect(got, `byte ${at}`).toBeTypeOf('string');
      }
      for (const length of [0, 100, 512, whole.length - 1]) {
        writeFileSync(file, whole.subarray(0, length));
        expect(await contentOf(file, 'tokens.txt')).toBeTypeOf('string');
      }
      writeFileSync(file, Buffer.concat([whole, Buffer.from('more')]));
      expect(await contentOf(file, 'tokens.txt')).toBe('damaged');
    },
  );

  it('A21 OpenSSL opens an AES-256-GCM artifact by the derivation in ARCHIVE.md', async () => {
    const { hkdfSync, scryptSync } = await import('node:crypto');
    const { digestHead } = await import('../../../infra/pool/model-build/archive/manifest.ts');
    const file = path.join(folderForTest(), 'a.amodel');
    const written = await write(file, 'key');
    if (!written.ok) throw new Error(written.refusal.text);
    const artifact = written.value.artifacts.find(({ name }) => name === 'tokens.txt');
    const bytes = readFileSync(file);
    const sealed = bytes.subarray(bytes.length - 1024 - 512).subarray(0, artifact?.bytes);
    const bound = digestHead(head);
    const master = scryptSync('key', bound, 32, { N: 32768, r: 8, p: 1, maxmem: 2 ** 26 });
    const key = Buffer.from(hkdfSync('sha256', master, '', 'key tokens.txt', 32));
    const gcm = createDecipheriv('aes-256-gcm', key, Buffer.from(artifact?.nonce ?? '', 'hex')).setAAD(bound);
    gcm.setAuthTag(sealed.subarray(-16));
    expect(Buffer.concat([gcm.update(sealed.subarray(0, -16)), gcm.final()]).toString()).toBe('a\nb\n');
  });

  it('M2 refuses to overwrite without -f, and leaves nothing of a failure', async () => {
    const folder = folderForTest();
    const file = path.join(folder, 'a.amodel');
    writeFileSync(file, 'mine');
    const refused = await write(file);
    expect(refused).toMatchObject({ ok: false, refusal: { kind: 'exists' } });
    expect(readFileSync(file, 'utf8')).toBe('mine');
    const missing = writeArchive(file, { head, sources: [{ name: 'x', file: path.join(folder, 'none') }] }, true);
    await expect(missing).rejects.toThrow();
    expect(readFileSync(file, 'utf8')).toBe('mine');
    expect(readdirSync(folder)).toEqual(['a.amodel']);
    expect((await write(file, undefined, undefined, true)).ok).toBe(true);
  });

  it('reports a file that is no archive', async () => {
    const file = path.join(folderForTest(), 'a.riva');
    writeFileSync(file, Buffer.alloc(4096, 7));
    expect(await contentOf(file)).toBe('unreadable');
    expect(await contentOf(`${file}.none`)).toBe('unreadable');
  });
});

describe('keys', () => {
  it.each([
    ['out.rmir:tlt_encode', 'out.rmir', 'tlt_encode'],
    ['out.rmir', 'out.rmir', undefined],
    ['C:\\models\\a.riva:k', 'C:\\models\\a.riva', 'k'],
    ['a.riva:env:KEY', 'a.riva', 'env:KEY'],
    ['a.riva:', 'a.riva', ''],
  ])('%s', (given, file, key) => expect(splitNamed(given)).toEqual({ path: file, ...(key !== undefined && { key }) }));

  it('from the environment, from a file, as it stands', async () => {
    const file = path.join(folderForTest(), 'key');
    writeFileSync(file, 'secret\n');
    const text = async (given: string) => {
      const key = await readKey(given, { KEY: 'secret' });
      return key.ok ? new TextDecoder().decode(key.value) : key.refusal.kind;
    };
    expect(await text(`file:${file}`)).toBe('secret');
    expect(await text('env:KEY')).toBe('secret');
    expect(await text('secret')).toBe('secret');
    expect(await text('file:/nowhere/key')).toBe('keyless');
    expect(await text('')).toBe('keyless');
  });
});
