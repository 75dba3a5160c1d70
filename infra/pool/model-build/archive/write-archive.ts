import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { ok } from '../../../../shared/result.ts';
import { MODEL_COPY_BYTES } from '../../agent/settings/limits.ts';
import { type BuildResult, problem } from '../problem.ts';
import { padding, writeHeader } from '../tar/header.ts';
import { writeWhole } from '../write-whole.ts';
import { type CipherName, makeNonce, makeSecret, type Secret, sealing, tagBytes } from './cipher.ts';
import { digestHead, encodeManifest, type Head, type Manifest, MODEL_ARTIFACT_BYTES } from './manifest.ts';

export const MANIFEST = 'auricle-archive.json';
export const MANIFEST_DIGEST = 'auricle-archive.sha256';
export const artifactPath = (name: string): string => `artifacts/${name}`;

/** Source of an artifact: a file (or a part of one), or bytes. */
export type Source =
  | { readonly name: string; readonly file: string; readonly at?: number; readonly bytes?: number }
  | { readonly name: string; readonly content: Uint8Array };

export interface Plan {
  readonly head: Head;
  readonly sources: readonly Source[];
  readonly key?: { readonly cipher: CipherName; readonly bytes: Uint8Array };
  /** Artifacts that stay unencrypted in an archive with a key. */
  readonly plain?: readonly string[];
}

/** Writes an archive: equal head, artifacts and key give equal bytes. See ARCHIVE.md. */
export function writeArchive(target: string, plan: Plan, force: boolean): Promise<BuildResult<Manifest>> {
  return writeWhole(target, force, async (temporary) => {
    const out = await open(temporary, 'wx', 0o600);
    try {
      return await fill(out, plan);
    } finally {
      await out.close();
    }
  });
}

async function fill(out: FileHandle, { head, sources, key, plain = [] }: Plan): Promise<BuildResult<Manifest>> {
  const bound = digestHead(head);
  const secret = key && (await makeSecret(key.cipher, key.bytes, bound));
  const sorted = [...sources].sort((a, b) => (a.name < b.name ? -1 : 1));
  const artifacts: Manifest['artifacts'] = [];
  for (const source of sorted) {
    const own = secret && !plain.includes(source.name) ? secret : undefined;
    const { size, digest } = await measure(source);
    const bytes = size + (own ? tagBytes(own.cipher) : 0);
    if (bytes > MODEL_ARTIFACT_BYTES) return problem('bound', `${source.name} has ${size} bytes`);
    const nonce = own && Buffer.from(makeNonce(own, source.name, digest)).toString('hex');
    artifacts.push({ name: source.name, bytes, sha256: '0'.repeat(64), ...(nonce && { nonce }) });
  }
  const { cipher, check = '' } = secret ?? {};
  const manifest: Manifest = { ...head, ...(cipher && { seal: { cipher, check } }), artifacts };
  // The digests are not known yet, but their lengths are.
  let at = bytesOf(MANIFEST, encodeManifest(manifest).length) + bytesOf(MANIFEST_DIGEST, digestLine(manifest).length);
  for (const [index, source] of sorted.entries()) {
    const artifact = artifacts[index] as Manifest['artifacts'][number];
    artifact.sha256 = await store({ out, at }, source, artifact, { secret, bound });
    at += bytesOf(artifactPath(artifact.name), artifact.bytes);
  }
  await out.truncate(at + 2 * 512);
  const first = await place(out, 0, MANIFEST, encodeManifest(manifest));
  await place(out, first, MANIFEST_DIGEST, digestLine(manifest));
  await out.sync();
  return ok(manifest);
}

/** Size of an entry with header and padding. */
const bytesOf = (name: string, size: number): number => writeHeader(name, size).length + size + padding(size);

export const digestLine = (manifest: Manifest): Uint8Array =>
  Buffer.from(`${createHash('sha256').update(encodeManifest(manifest)).digest('hex')}  ${MANIFEST}\n`);

async function place(out: FileHandle, at: number, name: string, content: Uint8Array): Promise<number> {
  const entry = Buffer.concat([writeHeader(name, content.length), content, Buffer.alloc(padding(content.length))]);
  await out.write(entry, 0, entry.length, at);
  return at + entry.length;
}

async function* read(source: Source): AsyncGenerator<Uint8Array> {
  if ('content' in source) {
    yield source.content;
    return;
  }
  const file = await open(source.file);
  try {
    const buffer = Buffer.alloc(MODEL_COPY_BYTES);
    let at = source.at ?? 0;
    const end = source.bytes === undefined ? Number.POSITIVE_INFINITY : at + source.bytes;
    while (at < end) {
      const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, end - at), at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

async function measure(source: Source): Promise<{ size: number; digest: Uint8Array }> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of read(source)) {
    hash.update(chunk);
    size += chunk.length;
  }
  return { size, digest: hash.digest() };
}

/** Writes one artifact with its header; returns the digest of the stored bytes. */
async function store(
  { out, at: from }: { readonly out: FileHandle; readonly at: number },
  source: Source,
  { name, bytes, nonce }: Manifest['artifacts'][number],
  { secret, bound }: { readonly secret: Secret | undefined; readonly bound: Uint8Array },
): Promise<string> {
  const hash = createHash('sha256');
  let at = from;
  const write = async (chunk: Uint8Array) => {
    await out.write(chunk, 0, chunk.length, at);
    at += chunk.length;
  };
  await write(writeHeader(artifactPath(name), bytes));
  const seal = secret && nonce ? sealing(secret, name, Buffer.from(nonce, 'hex'), bound) : undefined;
  const keep = async (chunk: Uint8Array) => {
    hash.update(chunk);
    await write(chunk);
  };
  for await (const chunk of read(source)) await keep(seal ? seal.update(chunk) : chunk);
  if (seal) await keep(seal.finish(new Uint8Array(0)) ?? new Uint8Array(0));
  if (at !== from + 512 + bytes) throw new Error(`${name} changed while it was read`);
  return hash.digest('hex');
}
