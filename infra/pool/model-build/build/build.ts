import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { ok } from '../../../../shared/result.ts';
import { type CipherName, cipherNames } from '../archive/cipher.ts';
import { readKey, splitNamed } from '../archive/key-reference.ts';
import type { Head, Manifest } from '../archive/manifest.ts';
import { type Archive, openArchive } from '../archive/open-archive.ts';
import { type Source, writeArchive } from '../archive/write-archive.ts';
import { openBlob } from '../blob.ts';
import { MODEL_TEXT_BYTES } from '../limits.ts';
import { assemble } from '../pipeline/assemble.ts';
import { options } from '../pipeline/options.ts';
import { checkLexicon, checkVocabulary } from '../pipeline/words.ts';
import { type BuildResult, problem } from '../problem.ts';
import { readText, scanText } from '../scan/data-file.ts';
import type { BuildCommand } from './read-command.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export interface Built {
  readonly file: string;
  readonly manifest: Manifest;
  readonly advice: readonly string[];
}

/** Joins the archives of a pipeline's networks into one, or reports the first missing or unfit part. */
export async function build(command: BuildCommand, environment: Environment): Promise<BuildResult<Built>> {
  const archives: Archive[] = [];
  const scratch = await mkdtemp(path.join(tmpdir(), 'auricle-build-'));
  try {
    for (const source of command.sources) {
      const opened = await openArchive(source, environment);
      if (!opened.ok) return opened;
      archives.push(opened.value);
      if (opened.value.manifest.kind !== 'model')
        return problem('artifact', `${opened.value.file} is a pipeline already: deploy it`);
    }
    return await put(command, archives, scratch, environment);
  } finally {
    for (const archive of archives) await archive.close();
    await rm(scratch, { recursive: true, force: true });
  }
}

async function put(
  command: BuildCommand,
  archives: readonly Archive[],
  scratch: string,
  environment: Environment,
): Promise<BuildResult<Built>> {
  const { pipeline } = command;
  const named = await readFiles(command);
  if (!named.ok) return named;
  const { settings, parts, sources: added } = named.value;
  const manifests = archives.map(({ manifest }) => manifest);
  const assembled = assemble(pipeline, manifests, settings, parts);
  if (!assembled.ok) return assembled;
  const { head, renamed, advice } = assembled.value;
  const sources = await extract(archives, { renamed, head, added }, scratch);
  if (!sources.ok) return sources;
  const words = await checkWords(head, sources.value);
  if (!words.ok) return words;
  const { path: out, key } = splitNamed(command.out);
  const bytes = key === undefined ? undefined : await readKey(key, environment);
  if (bytes && !bytes.ok) return bytes;
  const cipher = cipherNames.find(
    (one) => one === (command.cipher ?? 'aes-256-gcm') || one.startsWith(`${command.cipher}-`),
  );
  if (!cipher) return problem('written', `--cipher ${command.cipher}: ${cipherNames.join(' or ')}`);
  const sealed = bytes && { key: { cipher: cipher as CipherName, bytes: bytes.value } };
  const written = await writeArchive(out, { head, sources: sources.value, ...sealed }, command.force);
  return written.ok ? ok({ file: out, manifest: written.value, advice }) : written;
}

/** Turns file options into parts. */
async function readFiles({
  settings,
}: BuildCommand): Promise<
  BuildResult<{ settings: Record<string, string>; parts: Record<string, string>; sources: Source[] }>
> {
  const [kept, parts, sources]: [Record<string, string>, Record<string, string>, Source[]] = [{}, {}, []];
  for (const [name, value] of Object.entries(settings)) {
    const option = Object.hasOwn(options, name) ? options[name] : undefined;
    if (option?.shape !== 'file' || option.part === undefined) {
      kept[name] = value;
      continue;
    }
    if (parts[option.part] !== undefined) return problem('written', `${option.part} is given twice`);
    const opened = await openBlob(value, path.basename(value)).catch(() => undefined);
    if (!opened) return problem('unreadable', `${value} cannot be read`);
    const scanned = await scanText(opened.blob);
    await opened.close();
    if (!scanned.ok) return scanned;
    // A distinct name: the archive may contain another file of the same name.
    const artifact = `${option.part}${value.endsWith('.gz') ? '.gz' : '.txt'}`;
    parts[option.part] = artifact;
    sources.push({ name: artifact, file: value });
  }
  return ok({ settings: kept, parts, sources });
}

interface Selection {
  readonly head: Head;
  /** Artifact → its name in the pipeline, for each archive. */
  readonly renamed: readonly Readonly<Record<string, string>>[];
  /** Files of options, which replace artifacts of their name. */
  readonly added: readonly Source[];
}

/** Decrypts the artifacts that the pipeline uses; checkpoints and other imports are left out. */
async function extract(
  archives: readonly Archive[],
  { renamed, head, added }: Selection,
  scratch: string,
): Promise<BuildResult<Source[]>> {
  const used = new Set([
    ...head.graphs.flatMap(({ artifact, external }) => [artifact, ...external]),
    ...Object.values(head.parts),
  ]);
  const sources = [...added];
  for (const [index, archive] of archives.entries()) {
    for (const { name: stored } of archive.manifest.artifacts) {
      const name = renamed[index]?.[stored] ?? stored;
      if (!used.has(name) || added.some((one) => one.name === name)) continue;
      if (sources.some((one) => one.name === name)) return problem('artifact', `two archives have an artifact ${name}`);
      const file = path.join(scratch, String(index), name);
      const extracted = await archive.extract(stored, file);
      if (!extracted.ok) return extracted;
      sources.push({ name, file });
    }
  }
  return ok(sources);
}

async function checkWords(head: Head, sources: readonly Source[]): Promise<BuildResult<undefined>> {
  if (head.settings.task !== 'transcribe') return ok(undefined);
  const read = async (part: string): Promise<BuildResult<string | undefined>> => {
    const source = sources.find(({ name }) => name === head.parts[part]);
    if (!source) return ok(undefined);
    if ('content' in source) return ok(textOf(source.content));
    const opened = await openBlob(source.file, source.name);
    const text = await readText(opened.blob);
    await opened.close();
    return text;
  };
  const [vocabulary, lexicon] = [await read('vocabulary'), await read('lexicon')];
  if (!vocabulary.ok) return vocabulary;
  if (!lexicon.ok) return lexicon;
  const tokens = checkVocabulary(vocabulary.value ?? '', head.flows[0], head.settings);
  if (!tokens.ok) return tokens;
  return lexicon.value === undefined ? ok(undefined) : checkLexicon(lexicon.value);
}

const textOf = (content: Uint8Array): string =>
  Buffer.from(content[0] === 0x1f ? gunzipSync(content, { maxOutputLength: MODEL_TEXT_BYTES }) : content).toString(
    'utf8',
  );
