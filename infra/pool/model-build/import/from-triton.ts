import { glob, readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { ok } from '../../../../shared/result.ts';
import { MODEL_CONFIG_BYTES, parseText } from '../../models/config/parse-text.ts';
import type { Message, ModelConfig } from '../../models/config/schema.ts';
import type { Flow, Graph, TensorFacts } from '../archive/manifest.ts';
import { openBlob } from '../blob.ts';
import { type BuildResult, problem } from '../problem.ts';
import { checkConfig, isFolderName, partParameters } from '../scan/config-file.ts';
import { fileBelow, isPlainFolder } from '../scan/plain-file.ts';
import { scanFile } from '../scan/scan.ts';
import { type Draft, emptyDraft, join } from './draft.ts';
import { precisionOf, readNetwork } from './from-onnx.ts';
import { settingsFrom } from './parameters.ts';

/**
 * Imports a model of a Triton repository: an ensemble of ONNX networks with the files it names, and its
 * ensemble for live streams if there is one; or a single network. The import drops instances, queues and
 * accelerators of a configuration: they depend on the target, and `deploy` writes them. It reads files in the
 * folders of the model and its steps, and follows no link.
 */
export async function importTriton(folder: string): Promise<BuildResult<Draft>> {
  const config = await readConfig(folder);
  if (!config.ok) return config;
  const given = textsOf(config.value);
  const repository = path.dirname(path.resolve(folder));
  let draft: Draft = { ...emptyDraft, settings: settingsFrom(given) };
  const own = await importFlow(folder, config.value, '', draft);
  if (!own.ok) return own;
  draft = own.value;
  const live = given.stream_model;
  if (live !== undefined) {
    const liveFolder = await modelBeside(repository, live, folder);
    if (!liveFolder.ok) return liveFolder;
    const liveConfig = await readConfig(liveFolder.value);
    if (!liveConfig.ok) return liveConfig;
    const flow = await importFlow(liveFolder.value, liveConfig.value, 'stream', draft);
    if (!flow.ok) return flow;
    draft = {
      ...flow.value,
      settings: { ...flow.value.settings, ...settingsFrom(textsOf(liveConfig.value), 'stream') },
    };
  }
  return importParts(folder, given, draft);
}

const textsOf = (config: ModelConfig): Record<string, string> =>
  Object.fromEntries(Object.entries(config.parameters).map(([key, { string_value }]) => [key, string_value]));

async function readConfig(folder: string): Promise<BuildResult<ModelConfig>> {
  const found = await fileBelow(folder, 'config.pbtxt', folder);
  if (!found.ok) {
    const models = found.refusal.kind === 'unreadable' ? await modelsIn(folder) : [];
    return models.length > 0
      ? problem('unreadable', `${folder} is a whole repository: import one of ${models.join(', ')} in it`)
      : found;
  }
  const { file, size } = found.value;
  if (size > MODEL_CONFIG_BYTES) return problem('bound', `${file} has ${size} bytes`);
  const parsed = parseText(await readFile(file, 'utf8'));
  if (!parsed.ok) return problem('unreadable', `${file}: ${parsed.refusal.reason}`);
  const checked = checkConfig(parsed.value, file);
  return checked.ok ? ok(parsed.value) : checked;
}

/** Returns the folder of a model that another model names. */
async function modelBeside(repository: string, name: string, owner: string): Promise<BuildResult<string>> {
  const folder = path.join(repository, name);
  return isFolderName(name) && (await isPlainFolder(folder))
    ? ok(folder)
    : problem('unsafe', `${owner} names the model ${JSON.stringify(name)}, which is no folder beside it`);
}

/** Returns the folders that are models of a repository. */
async function modelsIn(folder: string): Promise<string[]> {
  const models: string[] = [];
  for await (const file of glob('*/config.pbtxt', { cwd: folder })) models.push(path.dirname(file));
  return models.sort();
}

async function importFlow(
  folder: string,
  config: ModelConfig,
  suffix: Flow['suffix'],
  before: Draft,
): Promise<BuildResult<Draft>> {
  const repository = path.dirname(path.resolve(folder));
  const steps = config.ensemble_scheduling?.step;
  let draft = before;
  for (const model of steps ? steps.map((step) => step.model_name) : [path.basename(path.resolve(folder))]) {
    if (draft.graphs.some(({ role }) => role === model)) continue;
    const place = steps ? await modelBeside(repository, model, folder) : ok(folder);
    if (!place.ok) return place;
    const graph = await importGraph(place.value, model);
    if (!graph.ok) return graph;
    draft = join(draft, graph.value);
  }
  const input = tensorsOf(config.input);
  const output = tensorsOf(config.output);
  if (!input.ok) return input;
  if (!output.ok) return output;
  const same = (tensors: readonly { name: string }[]) => Object.fromEntries(tensors.map(({ name }) => [name, name]));
  const step = steps
    ? steps.map(({ model_name, input_map, output_map }) => ({ role: model_name, input_map, output_map }))
    : [{ role: path.basename(path.resolve(folder)), input_map: same(config.input), output_map: same(config.output) }];
  const flow: Flow = { suffix, input: input.value.map(plain), output: output.value.map(plain), step };
  return ok(join(draft, { ...emptyDraft, flows: [flow] }));
}

/** Drops the ragged flag, a property of the network and not of the ensemble. */
const plain = ({ ragged: _, ...tensor }: TensorFacts): TensorFacts => tensor;

type Io = Message<'Input'> | Message<'Output'>;

function tensorsOf(list: readonly Io[]): BuildResult<TensorFacts[]> {
  const tensors: TensorFacts[] = [];
  for (const one of list) {
    if (one.reshape && (one.reshape.shape.length > 0 || one.dims.some((dim) => dim !== 1))) {
      return problem('unsupported', `the tensor ${one.name} is reshaped`);
    }
    tensors.push({
      name: one.name,
      data_type: one.data_type,
      dims: one.reshape ? [] : one.dims,
      ...('allow_ragged_batch' in one && one.allow_ragged_batch && { ragged: true as const }),
    });
  }
  return ok(tensors);
}

async function importGraph(folder: string, role: string): Promise<BuildResult<Draft>> {
  const config = await readConfig(folder);
  if (!config.ok) return config;
  const { platform, backend, default_model_filename: named, max_batch_size, batch_input } = config.value;
  if (platform !== 'onnxruntime_onnx' && backend !== 'onnxruntime') {
    return problem('unsupported', `${folder} is no ONNX network: backend "${backend || platform}"`);
  }
  const version = await newestVersion(folder);
  if (version === undefined) return problem('unreadable', `${folder} has no version`);
  const file = await fileBelow(folder, `${version}/${named || 'model.onnx'}`, folder);
  if (!file.ok) return file;
  const network = await readNetwork(file.value.file, role);
  if (!network.ok) return network;
  const { facts, artifact, external, sources } = network.value;
  const [input, output, memory] = [
    tensorsOf(config.value.input),
    tensorsOf(config.value.output),
    memoryOf(config.value),
  ];
  if (!input.ok) return input;
  if (!output.ok) return output;
  if (!memory.ok) return memory;
  const graph: Graph = {
    role,
    artifact,
    external: [...external],
    batched: max_batch_size > 0,
    precision: precisionOf(facts),
    input: input.value,
    output: output.value,
    batch_input: batch_input.map(({ kind, target_name, data_type, source_input }) => ({
      kind,
      data_type,
      target_name: target_name[0] ?? '',
      source_input: source_input[0] ?? '',
    })),
    ...memory.value,
  };
  return ok({ ...emptyDraft, graphs: [graph], sources });
}

async function newestVersion(folder: string): Promise<string | undefined> {
  const entries = await readdir(folder).catch(() => []);
  return entries.filter((name) => /^[1-9]\d*$/.test(name)).sort((a, b) => Number(b) - Number(a))[0];
}

function memoryOf({ sequence_batching: batching }: ModelConfig): BuildResult<Pick<Graph, 'state' | 'control'>> {
  if (!batching) return ok({ state: [], control: [] });
  const state: Graph['state'] = [];
  for (const { input_name, output_name, data_type, dims, initial_state } of batching.state) {
    if (initial_state.some(({ zero_data }) => !zero_data)) {
      return problem('unsupported', `the state ${input_name} does not begin with zeroes`);
    }
    state.push({ input_name, output_name, data_type, dims });
  }
  const control: Graph['control'] = [];
  for (const { name, control: kinds } of batching.control_input) {
    const [kind] = kinds;
    if (!kind || kinds.length > 1) return problem('unsupported', `the control tensor ${name} means several things`);
    const flag =
      kind.int32_false_true.length > 0 ? 'TYPE_INT32' : kind.fp32_false_true.length > 0 ? 'TYPE_FP32' : 'TYPE_BOOL';
    control.push({ name, kind: kind.kind, data_type: kind.kind === 'CONTROL_SEQUENCE_CORRID' ? kind.data_type : flag });
  }
  return ok({ state, control });
}

/** Imports the files that the parameters name: vocabulary, lexicon, language model. */
async function importParts(folder: string, given: Record<string, string>, draft: Draft): Promise<BuildResult<Draft>> {
  const parts: Record<string, string> = {};
  const sources: Draft['sources'][number][] = [];
  for (const part of partParameters) {
    const written = given[part];
    if (written === undefined) continue;
    const found = await fileBelow(folder, written, `the ${part} of ${folder}`);
    if (!found.ok) return found;
    const { file } = found.value;
    const name = path.basename(file);
    const opened = await openBlob(file, name).catch(() => undefined);
    if (!opened) return problem('unreadable', `${file}, the ${part}, cannot be read`);
    const scanned = await scanFile(opened.blob);
    await opened.close();
    if (!scanned.ok) return scanned;
    parts[part] = name;
    sources.push({ name, file });
  }
  return ok(join(draft, { ...emptyDraft, parts, sources }));
}
