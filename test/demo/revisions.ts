// Revisions of the reference model, each a repository of its own, made with the tools that operators have.
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from '../../infra/local/root.ts';
import { makeWeight, readModel, type Weight, writeModel } from '../../infra/pool/model-build/onnx/graph.ts';
import { countOf, elements, readFloats, writeTensor } from '../../infra/pool/model-build/onnx/tensor.ts';
import { seeded } from '../../shared/registry/seeded.ts';
import type { Operator } from './operate.ts';

export const MODEL = 'reference-en';
export const SHIPPED = path.join(ROOT, 'infra/pool/models/repository');

export interface Built {
  readonly repository: string;
  /** The folders that it is made of. */
  readonly parts: readonly string[];
  /** The folder of the network in it. */
  readonly network: string;
}

export interface Registered extends Built {
  readonly revision: string;
}

/** Imported, built and deployed; `options` are those of `auricle model deploy`. */
export async function build(operator: Operator, folder: string, source: string, ...options: string[]): Promise<Built> {
  mkdirSync(folder, { recursive: true });
  const [archive, pipeline] = [path.join(folder, 'imported.amodel'), path.join(folder, 'built.apipeline')];
  await operator.run('import', copyWhole(source, path.join(folder, 'source')), '--out', archive);
  await operator.run('build', 'speech_recognition', pipeline, archive, `--name=${MODEL}`, '--language_code=en');
  const repository = path.join(folder, 'models');
  const { models } = await operator.run<{ models: { folders: string[] }[] }>(
    'deploy',
    pipeline,
    repository,
    ...options,
  );
  const parts = models.flatMap(({ folders }) => folders);
  return { repository, parts, network: networkIn(repository, parts) };
}

/** Copies the shipped repository, and into the ensemble the files that it names in other folders, which `import` refuses. */
function copyWhole(ensemble: string, repository: string): string {
  cpSync(SHIPPED, repository, { recursive: true });
  const copy = path.join(repository, ensemble);
  const config = path.join(copy, 'config.pbtxt');
  const text = readFileSync(config, 'utf8');
  for (const [, named = ''] of text.matchAll(/"(\.\.\/[^"]+)"/g)) {
    cpSync(path.join(SHIPPED, ensemble, named), path.join(copy, path.basename(named)));
  }
  writeFileSync(config, text.replace(/"\.\.\/[^"]+\/([^"/]+)"/g, '"$1"'));
  return copy;
}

const networkIn = (repository: string, parts: readonly string[]): string =>
  path.join(repository, parts.find((name) => name.includes('asr_inference')) ?? '');

/** Copies the shipped `reference-en`, so that its signature can lie beside it. */
export function takeShipped(folder: string): Built {
  const repository = path.join(folder, 'models');
  const parts = [
    'reference-en',
    'vad_preprocess',
    'asr_inference',
    'nlp_postprocess',
    'reference-en-stream',
    'vad_preprocess_stream',
    'asr_stream',
  ];
  for (const part of parts) cpSync(path.join(SHIPPED, part), path.join(repository, part), { recursive: true });
  return { repository, parts, network: path.join(repository, 'asr_inference') };
}

/** A copy whose training went wrong: every weight of 32 bits is a little off. */
export function spoil({ repository, parts, network }: Built, folder: string, spread: number): Built {
  const copy = path.join(folder, 'models');
  cpSync(repository, copy, { recursive: true });
  const file = path.join(copy, path.basename(network), '1/model.onnx');
  const random = seeded(1);
  const read = readModel(readFileSync(file));
  const weights = read.weights.map((weight) => (isWide(weight) ? shake(weight, spread, random) : weight));
  writeFileSync(file, writeModel({ ...read, weights }));
  return { repository: copy, parts, network: path.dirname(path.dirname(file)) };
}

const WIDE: readonly number[] = [elements.FLOAT, elements.FLOAT16];
const isWide = ({ elem, dims, elsewhere }: Weight): boolean => WIDE.includes(elem) && !elsewhere && countOf(dims) >= 64;

function shake({ name, dims, bytes }: Weight, spread: number, random: () => number): Weight {
  const values = readFloats(bytes).map((value) => value * (1 + spread * (2 * random() - 1)));
  return makeWeight(writeTensor(name, dims, values));
}

/** Signed by its author, and known from then on. */
export async function signAndRegister(operator: Operator, built: Built, ...options: string[]): Promise<Registered> {
  const { repository, parts } = built;
  await operator.run('sign', repository, ...parts, ...operator.as('author'), ...options);
  await operator.run('verify', repository, ...parts, ...operator.as('author'));
  const { revision } = await operator.run<{ revision: string }>('push', repository, ...parts, '--model', MODEL);
  return { ...built, revision };
}
