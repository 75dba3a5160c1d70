import { createHash } from 'node:crypto';
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import path from 'node:path';
import { ok } from '../../../../shared/result.ts';
import { MODEL_COPY_BYTES } from '../../agent/settings/limits.ts';
import { MODEL_MANIFEST_BYTES, MODEL_TEXT_BYTES } from '../limits.ts';
import { type BuildResult, problem } from '../problem.ts';
import { BLOCK, padding, writeHeader } from '../tar/header.ts';
import { makeSecret, opening, type Secret, tagBytes } from './cipher.ts';
import { readKey, splitNamed } from './key-reference.ts';
import { digestHead, encodeManifest, type Manifest, manifestShape } from './manifest.ts';
import { artifactPath, digestLine, MANIFEST, MANIFEST_DIGEST } from './write-archive.ts';

export interface Archive {
  /** Path as given, without its key. */
  readonly file: string;
  readonly manifest: Manifest;
  /** Digest of the manifest, which covers all content. */
  readonly digest: string;
  /** Decrypts an artifact into a new file; removes an incomplete one. */
  extract(name: string, target: string): Promise<BuildResult<void>>;
  /** Verifies the digest and the tag of an artifact. */
  check(name: string): Promise<BuildResult<void>>;
  /** Reads an artifact into memory, up to the bound of texts. */
  read(name: string): Promise<BuildResult<Uint8Array>>;
  close(): Promise<void>;
}

/** Opens `path` or `path:key`. Without a key only the manifest and unsealed artifacts are readable. */
export async function openArchive(
  named: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<BuildResult<Archive>> {
  const { path: file, key } = splitNamed(named);
  const handle = await open(file).catch(() => undefined);
  if (!handle) return problem('unreadable', `${file} cannot be read`);
  const made = await start(file, handle, key, environment).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error) return problem('unreadable', `${file} cannot be read`);
    throw error;
  });
  if (!made.ok) await handle.close();
  return made;
}

async function start(
  file: string,
  handle: FileHandle,
  key: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<BuildResult<Archive>> {
  const found = await readManifest(file, handle);
  if (!found.ok) return found;
  const { manifest, at } = found.value;
  const bound = digestHead(manifest);
  let secret: Secret | undefined;
  if (manifest.seal && key !== undefined) {
    const bytes = await readKey(key, environment);
    if (!bytes.ok) return bytes;
    secret = await makeSecret(manifest.seal.cipher, bytes.value, bound);
    if (secret.check !== manifest.seal.check) return problem('key', `the key is not that of ${file}`);
  }
  const places = await checkPlaces(file, handle, manifest, at);
  if (!places.ok) return places;
  const stored = { file, handle, places: places.value, secret, bound };
  return ok({
    file,
    manifest,
    digest: createHash('sha256').update(encodeManifest(manifest)).digest('hex'),
    extract: (name, target) => extract(stored, manifest, name, target),
    check: (name) => pass(stored, manifest, name, async () => {}),
    read: (name) => readArtifact(stored, manifest, name),
    close: () => handle.close(),
  });
}

/** Reads bytes; undefined when the file is too short. */
async function readAt(handle: FileHandle, at: number, length: number): Promise<Uint8Array | undefined> {
  const buffer = Buffer.alloc(length);
  const { bytesRead } = await handle.read(buffer, 0, length, at);
  return bytesRead === length ? buffer : undefined;
}

async function readManifest(
  file: string,
  handle: FileHandle,
): Promise<BuildResult<{ manifest: Manifest; at: number }>> {
  const foreign = problem(
    'unreadable',
    `${file} is not an archive of this tool (see ARCHIVE.md; NVIDIA's need NVIDIA's tool)`,
  );
  const header = await readAt(handle, 0, BLOCK);
  if (!header || Buffer.from(header.subarray(0, MANIFEST.length + 1)).toString('latin1') !== `${MANIFEST}\0`)
    return foreign;
  const size = Number.parseInt(Buffer.from(header.subarray(124, 135)).toString('latin1'), 8);
  const damaged = problem('damaged', `${file}: what it says of itself is damaged`);
  if (!Number.isSafeInteger(size) || size > MODEL_MANIFEST_BYTES) return damaged;
  if (!isSame(header, writeHeader(MANIFEST, size))) return damaged;
  const text = await readAt(handle, BLOCK, size);
  if (!text) return damaged;
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(text));
  } catch {
    return damaged;
  }
  if ((value as { format?: unknown } | null)?.format !== 'auricle-archive/1') {
    return problem('unsupported', `${file} is an archive of another version`);
  }
  const parsed = manifestShape.safeParse(value);
  if (!parsed.success || !isSame(text, encodeManifest(parsed.data))) return damaged;
  const line = digestLine(parsed.data);
  const behind = BLOCK + size;
  const expected = Buffer.concat([
    Buffer.alloc(padding(size)),
    writeHeader(MANIFEST_DIGEST, line.length),
    line,
    Buffer.alloc(padding(line.length)),
  ]);
  const found = await readAt(handle, behind, expected.length);
  return found && isSame(found, expected) ? ok({ manifest: parsed.data, at: behind + expected.length }) : damaged;
}

const isSame = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

/** Locates each artifact. The bytes between them must be the writer's: no byte is free. */
async function checkPlaces(
  file: string,
  handle: FileHandle,
  { artifacts }: Manifest,
  from: number,
): Promise<BuildResult<ReadonlyMap<string, number>>> {
  const places = new Map<string, number>();
  let at = from;
  for (const { name, bytes } of artifacts) {
    const header = await readAt(handle, at, BLOCK);
    const rest = await readAt(handle, at + BLOCK + bytes, padding(bytes));
    if (!header || !isSame(header, writeHeader(artifactPath(name), bytes)) || !rest?.every((byte) => byte === 0)) {
      return problem('damaged', `${file}: ${name} is not where it should be`);
    }
    places.set(name, at + BLOCK);
    at += BLOCK + bytes + padding(bytes);
  }
  const end = await readAt(handle, at, 2 * BLOCK);
  const { size } = await handle.stat();
  return end?.every((byte) => byte === 0) && size === at + 2 * BLOCK
    ? ok(places)
    : problem('damaged', `${file} does not end where it should`);
}

interface Stored {
  readonly file: string;
  readonly handle: FileHandle;
  readonly places: ReadonlyMap<string, number>;
  readonly secret: Secret | undefined;
  readonly bound: Uint8Array;
}

/** Passes the decrypted pieces of an artifact on. Only the result tells whether they were authentic. */
async function pass(
  { file, handle, places, secret, bound }: Stored,
  manifest: Manifest,
  name: string,
  give: (piece: Uint8Array) => Promise<void>,
): Promise<BuildResult<void>> {
  const artifact = manifest.artifacts.find((one) => one.name === name);
  const from = places.get(name);
  if (!artifact || from === undefined) return problem('artifact', `${file} has no ${name}`);
  const { nonce } = artifact;
  if (nonce !== undefined && !secret) return problem('keyless', `${file} is sealed: write ${file}:KEY`);
  const open = nonce !== undefined && secret ? opening(secret, name, Buffer.from(nonce, 'hex'), bound) : undefined;
  const content = artifact.bytes - (open && secret ? tagBytes(secret.cipher) : 0);
  const hash = createHash('sha256');
  const buffer = Buffer.alloc(MODEL_COPY_BYTES);
  for (let at = 0; at < content; ) {
    const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, content - at), from + at);
    if (bytesRead === 0) return problem('damaged', `${file}: ${name} is cut off`);
    const piece = buffer.subarray(0, bytesRead);
    hash.update(piece);
    await give(open ? open.update(piece) : piece);
    at += bytesRead;
  }
  const tag = (await readAt(handle, from + content, artifact.bytes - content)) ?? new Uint8Array(0);
  hash.update(tag);
  if (hash.digest('hex') !== artifact.sha256) return problem('damaged', `${file}: ${name} is not what was written`);
  const last = open ? open.finish(tag) : new Uint8Array(0);
  if (!last) return problem('damaged', `${file}: ${name} does not belong to what the archive says of itself`);
  await give(last);
  return ok(undefined);
}

async function extract(stored: Stored, manifest: Manifest, name: string, target: string): Promise<BuildResult<void>> {
  await mkdir(path.dirname(target), { recursive: true });
  const out = await open(target, 'wx');
  let passed: BuildResult<void> | undefined;
  try {
    passed = await pass(stored, manifest, name, async (piece) => {
      await out.writeFile(piece);
    });
    return passed;
  } finally {
    await out.close();
    if (!passed?.ok) await rm(target, { force: true });
  }
}

async function readArtifact(stored: Stored, manifest: Manifest, name: string): Promise<BuildResult<Uint8Array>> {
  const found = manifest.artifacts.find((one) => one.name === name);
  if (found && found.bytes > MODEL_TEXT_BYTES) return problem('bound', `${name} is too long to be read`);
  const pieces: Uint8Array[] = [];
  const passed = await pass(stored, manifest, name, async (piece) => void pieces.push(Uint8Array.from(piece)));
  return passed.ok ? ok(Buffer.concat(pieces)) : passed;
}
