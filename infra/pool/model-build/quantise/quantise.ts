import { createHash, randomBytes } from 'node:crypto';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { ok } from '../../../../shared/result.ts';
import { parseText } from '../../models/config/parse-text.ts';
import { printText } from '../../models/config/print-text.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import { openBlob } from '../blob.ts';
import { MARK, mayPlace, placeModels } from '../deploy/place-models.ts';
import { type OnnxModel, readModel, writeModel } from '../onnx/graph.ts';
import { countOf, elements } from '../onnx/tensor.ts';
import { type BuildResult, problem } from '../problem.ts';
import { scanOnnx } from '../scan/onnx-file.ts';
import { findProducts, type Product, SMALLEST } from './find-products.ts';
import type { SampleSource } from './samples.ts';
import { CALIBRATION_SAMPLES_MAX } from './samples.ts';
import { toDynamic, worthIt } from './to-dynamic.ts';
import { observed, toStatic } from './to-static.ts';
import { widen } from './widen.ts';

export interface Quantise {
  /** A model of a Triton repository with one ONNX network. */
  readonly folder: string;
  /** Folder of the new model; its last part is the model's name. */
  readonly out: string;
  /** Samples for fixed activation ranges (static); without them ranges are computed at run time (dynamic). */
  readonly calibrate?: SampleSource;
  readonly force?: boolean;
}

export interface Quantised {
  readonly folder: string;
  readonly name: string;
  readonly method: 'dynamic' | 'static';
  /** Digest of the source network; `digest` is that of the new one. */
  readonly from: string;
  readonly digest: string;
  readonly bytes: { readonly before: number; readonly after: number };
  /** Number of integer products, and of samples used. */
  readonly products: number;
  readonly samples: number;
  readonly advice: readonly string[];
}

/** Per-axis scales exist since version 13 of the standard operators. */
const OPSET = 13;

/** Makes a model folder with 8-bit weights from one with 16 or 32 bits. Atomic. */
export async function quantise(given: Quantise): Promise<BuildResult<Quantised>> {
  const [out, repository] = [path.resolve(given.out), path.dirname(path.resolve(given.out))];
  const name = path.basename(out);
  const allowed = await mayPlace(repository, new Map([[name, name]]), given.force ?? false);
  if (!allowed.ok) return allowed;
  const source = await readSource(given.folder);
  if (!source.ok) return source;
  const { config, file, bytes, model } = source.value;
  const products = given.calibrate ? source.value.products : worthIt(source.value.products);
  const made = given.calibrate
    ? await makeStatic(model, products, given.calibrate)
    : ok({ model: toDynamic(model, products), samples: 0 });
  if (!made.ok) return made;
  const written = writeModel(made.value.model);
  const facts = {
    method: given.calibrate ? 'static' : 'dynamic',
    from: digestOf(bytes),
    digest: digestOf(written),
    products: products.length,
    samples: made.value.samples,
  } as const;
  await mkdir(repository, { recursive: true });
  const staged = path.join(repository, `.${name}.${randomBytes(6).toString('hex')}.partial`);
  try {
    const folder = path.join(staged, name);
    await mkdir(path.join(folder, '1'), { recursive: true });
    await writeFile(path.join(folder, '1/model.onnx'), written);
    await writeFile(path.join(folder, 'config.pbtxt'), printText(configOf(config, name, facts.method)));
    const kept = await keepFiles(given.folder, folder);
    const files = ['1/model.onnx', 'config.pbtxt', ...kept, MARK].sort();
    await writeFile(path.join(folder, MARK), `${JSON.stringify({ name, quantised: facts, files }, undefined, 2)}\n`);
    const placed = await placeModels(repository, staged, new Map([[name, name]]), given.force ?? false);
    if (!placed.ok) return placed;
  } finally {
    await rm(staged, { recursive: true, force: true });
  }
  const sizes = { before: bytes.length, after: written.length };
  return ok({ folder: out, name, ...facts, bytes: sizes, advice: adviceOf(file, facts) });
}

async function makeStatic(
  model: OnnxModel,
  products: readonly Product[],
  source: SampleSource,
): Promise<BuildResult<{ model: OnnxModel; samples: number }>> {
  // Lazy imports: only a calibration loads the runtime.
  const [{ calibrate }, { openSamples }] = [await import('./calibrate.ts'), await import('./samples.ts')];
  const samples = await openSamples(source);
  if (!samples.ok) return samples;
  try {
    const ranges = await calibrate(model, observed(products), samples.value.read());
    if (!ranges.ok) return ranges;
    return ok({ model: toStatic(model, products, ranges.value), samples: samples.value.count });
  } finally {
    await samples.value.close();
  }
}

const digestOf = (bytes: Uint8Array) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

const bytesWide: ReadonlySet<number> = new Set([elements.INT8, elements.UINT8]);

interface Source {
  readonly config: ModelConfig;
  readonly file: string;
  readonly bytes: Uint8Array;
  readonly model: OnnxModel;
  readonly products: readonly Product[];
}

async function readSource(folder: string): Promise<BuildResult<Source>> {
  const text = await readFile(path.join(folder, 'config.pbtxt'), 'utf8').catch(() => undefined);
  if (text === undefined) return problem('unreadable', `${folder} has no config.pbtxt`);
  const config = parseText(text);
  if (!config.ok) return problem('unreadable', `${folder}: ${config.refusal.reason}`);
  const { platform, backend, default_model_filename: named } = config.value;
  if (platform !== 'onnxruntime_onnx' && backend !== 'onnxruntime')
    return problem('unsupported', `${folder} has no ONNX network of its own: quantise the networks it is made of`);
  const versions = (await readdir(folder)).filter((one) => /^[1-9]\d*$/.test(one)).map(Number);
  const file = path.join(folder, String(Math.max(...versions)), named || 'model.onnx');
  const opened = await openBlob(file, file).catch(() => undefined);
  if (!opened) return problem('unreadable', `${file} cannot be read`);
  try {
    const facts = await scanOnnx(opened.blob);
    if (!facts.ok) return facts;
    if (facts.value.external.length > 0) return problem('unsupported', `${file} keeps weights in other files`);
    const bytes = await opened.blob.read(0, opened.blob.size);
    const read = readModel(bytes);
    if (read.opset < OPSET)
      return problem('unsupported', `${file} has operators of version ${read.opset}, below ${OPSET}`);
    // A second rounding loses more and gains nothing; the report must name the existing 8-bit weights.
    if (read.weights.some(({ elem, dims }) => bytesWide.has(elem) && countOf(dims) >= SMALLEST))
      return problem('unsupported', `${file} has weights of 8 bits already`);
    const model = widen(read);
    const products = findProducts(model);
    if (products.length === 0) return problem('unsupported', `${file} has no products with weights of 16 or 32 bits`);
    return ok({ config: config.value, file, bytes, model, products });
  } finally {
    await opened.close();
  }
}

/**
 * Returns the configuration with another name and precision, and without accelerators, which would compute
 * other results than were measured.
 */
function configOf(config: ModelConfig, name: string, method: string): ModelConfig {
  const { optimization, parameters } = config;
  const parameter = (value: string) => ({ string_value: value });
  return {
    ...config,
    name,
    default_model_filename: '',
    optimization: optimization && { ...optimization, execution_accelerators: undefined },
    parameters: { ...parameters, precision: parameter('int8'), quantised: parameter(method) },
  };
}

/**
 * Copies vocabularies and the like. Versions, configurations for other targets and marks of other tools are
 * left out.
 */
async function keepFiles(from: string, to: string): Promise<string[]> {
  const entries = await readdir(from, { withFileTypes: true });
  const kept = entries
    .filter((one) => one.isFile() && one.name !== 'config.pbtxt' && one.name !== MARK)
    .map((one) => one.name)
    .sort();
  for (const name of kept) await cp(path.join(from, name), path.join(to, name));
  return kept;
}

function adviceOf(file: string, { method, samples }: Pick<Quantised, 'method' | 'samples'>): string[] {
  const few = method === 'static' && samples < CALIBRATION_SAMPLES_MAX;
  const most = CALIBRATION_SAMPLES_MAX;
  return [
    ...(few ? [`calibrated with ${samples} samples; ${most} say more about what is rare`] : []),
    `${path.basename(file)}: measure its word errors before it serves; no gate has seen this revision`,
  ];
}
