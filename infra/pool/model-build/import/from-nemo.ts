import { open } from 'node:fs/promises';
import path from 'node:path';
import { pipeline as flow, Transform } from 'node:stream';
import { promisify } from 'node:util';
import { createGunzip } from 'node:zlib';
import { ok } from '../../../../shared/result.ts';
import { nameShape } from '../archive/manifest.ts';
import { type Blob, openBlob } from '../blob.ts';
import { MODEL_UNPACKED_BYTES } from '../limits.ts';
import { type PartRule, pipelineOf, pipelines } from '../pipeline/pipelines.ts';
import { type BuildResult, problem } from '../problem.ts';
import { readText } from '../scan/data-file.ts';
import { type Scanned, scanFile } from '../scan/scan.ts';
import { listTar } from '../tar/read-tar.ts';
import { type Draft, emptyDraft } from './draft.ts';
import { factsOf } from './nemo-config.ts';
import { readYaml } from './yaml.ts';

const CONFIG = 'model_config.yaml';

/** Unpacks a gzip to a file, up to the bound. */
async function gunzip(file: string, target: string): Promise<BuildResult<undefined>> {
  let total = 0;
  const bounded = new Transform({
    transform(chunk: Uint8Array, _, done) {
      total += chunk.length;
      if (total > MODEL_UNPACKED_BYTES) done(new Error('bound'));
      else done(null, chunk);
    },
  });
  try {
    const [from, to] = [await open(file), await open(target, 'wx')];
    await promisify(flow)(from.createReadStream(), createGunzip(), bounded, to.createWriteStream());
    return ok(undefined);
  } catch (error) {
    return (error as Error).message === 'bound'
      ? problem('bound', `${file} unpacks to more than ${MODEL_UNPACKED_BYTES} bytes`)
      : problem('damaged', `${file} is a damaged gzip`);
  }
}

/**
 * Imports a `.nemo`: a tar, compressed or not, of a configuration, weights and further files. Everything is
 * scanned before any use. The weights are stored unchanged; running them needs their exported network, given
 * as ONNX.
 */
export async function importNemo(file: string, scratch: string): Promise<BuildResult<Draft>> {
  let whole = await openBlob(file, path.basename(file)).catch(() => undefined);
  if (!whole) return problem('unreadable', `${file} cannot be read`);
  try {
    const magic = await whole.blob.read(0, 2);
    if (magic[0] === 0x1f && magic[1] === 0x8b) {
      const plain = path.join(scratch, 'unpacked.tar');
      const unpacked = await gunzip(file, plain);
      if (!unpacked.ok) return unpacked;
      await whole.close();
      whole = await openBlob(plain, path.basename(file));
    }
    const files = await listTar(whole.blob);
    return files.ok ? await readFiles(file, files.value) : files;
  } finally {
    await whole.close();
  }
}

async function readFiles(file: string, files: readonly Blob[]): Promise<BuildResult<Draft>> {
  const scanned = new Map<string, Scanned>();
  for (const blob of files) {
    const found = await scanFile(blob);
    if (!found.ok) return problem(found.refusal.kind, `${file}: ${found.refusal.text}`);
    scanned.set(blob.name, found.value);
  }
  const written = files.find(({ name }) => name === CONFIG);
  if (!written) return problem('unreadable', `${file} has no ${CONFIG}: it is no .nemo`);
  const weights = files.filter(({ name }) => ['checkpoint', 'safetensors'].includes(scanned.get(name)?.kind ?? ''));
  if (weights.length === 0) return problem('unreadable', `${file} holds no weights`);
  const text = await readText(written);
  if (!text.ok) return text;
  const config = readYaml(text.value, `${file}: ${CONFIG}`);
  if (!config.ok) return config;
  const facts = factsOf(config.value, `${file}: ${CONFIG}`);
  if (!facts.ok) return facts;
  const { model, settings, vocabulary, advice } = facts.value;
  const unfit = files.find(({ name }) => !nameShape.safeParse(`nemo/${name}`).success);
  if (unfit) return problem('unsupported', `${file}: ${unfit.name} is no name for an artifact`);
  const pipeline = pipelineOf([model]);
  const parts: Record<string, string> = { config: `nemo/${CONFIG}` };
  for (const rule of pipeline ? (pipelines[pipeline].parts as readonly PartRule[]) : []) {
    const found = findPart(rule, files, Object.values(parts));
    if (found) parts[rule.part] = found;
  }
  const sources: Draft['sources'][number][] = files.map(({ name, size, place }) => ({
    name: `nemo/${name}`,
    file: place.file,
    at: place.at,
    bytes: size,
  }));
  if (vocabulary && parts.vocabulary === undefined) {
    parts.vocabulary = 'tokens.txt';
    sources.push({ name: 'tokens.txt', content: Buffer.from(vocabulary.map((token) => `${token}\n`).join('')) });
  }
  return ok({ ...emptyDraft, classes: [model], settings, parts, sources, advice });
}

/**
 * Returns the checkpoint's file for a part; of several candidates the first by name that no part has taken.
 */
function findPart({ called }: PartRule, files: readonly Blob[], taken: readonly string[]): string | undefined {
  const names = files.map(({ name }) => `nemo/${name}`).sort();
  return called && names.find((name) => called.test(name) && !taken.includes(name));
}
