import { ok } from '../../../../shared/result.ts';
import { createNames } from '../../models/config/names.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import type { Flow, Graph, Head } from '../archive/manifest.ts';
import { type BuildResult, problem } from '../problem.ts';
import { MARK } from './place-models.ts';
import type { Target } from './targets.ts';
import { flowName, modelName, padsWindows, parametersOf, writeFlowConfig, writeGraphConfig } from './write-config.ts';

/** One folder of a model repository. */
export interface PlannedModel {
  readonly name: string;
  /** Configurations, one for each target, in order. */
  readonly configs: readonly ModelConfig[];
  /** Path in the folder → artifact. */
  readonly files: Readonly<Record<string, string>>;
}

/** The lowest precision of the networks is that of the whole: words may be lost there. */
const precisionOf = (graphs: readonly Graph[]): Graph['precision'] =>
  (['int8', 'fp16'] as const).find((one) => graphs.some(({ precision }) => precision === one)) ?? 'fp32';

/** Parameters of an ensemble for the agent; paths are those of files in the same folder. */
function parametersFor(head: Head, flow: Flow): Record<string, string> {
  const { settings, parts } = head;
  const { task = 'infer', language_code: language } = settings;
  const precision = precisionOf(head.graphs.filter(({ role }) => flow.step.some((one) => one.role === role)));
  const parametersOf = (names: readonly (readonly [parameter: string, value: string | undefined])[]) =>
    Object.fromEntries(names.filter((entry): entry is [string, string] => entry[1] !== undefined));
  const files = Object.fromEntries(Object.entries(parts).map(([part, artifact]) => [part, fileOf(artifact)]));
  const live = head.flows.find(({ suffix }) => suffix === 'stream');
  if (flow.suffix === 'stream') {
    const hop = Number(settings.chunk_size ?? 0) * 1000;
    const window = hop + Number(settings.overlap_milliseconds ?? 0);
    return parametersOf([
      ['window_milliseconds', hop > 0 ? String(window) : undefined],
      ['hop_milliseconds', hop > 0 ? String(hop) : undefined],
      // Callers may also send tensors, window by window.
      ['task', 'infer'],
      ['language', language],
      ['precision', precision],
    ]);
  }
  if (task === 'transcribe') {
    return parametersOf([
      ['language', language],
      ['sample_rate', settings.sample_rate],
      ['frame_milliseconds', settings.ms_per_timestep],
      ['vocabulary', files.vocabulary],
      ['blank', settings.blank],
      ['word_boundary', settings.word_boundary],
      ['lexicon', files.lexicon],
      ['language_model', files.language_model],
      ['chunk_size', settings.chunk_size],
      ['precision', precision],
      ['stream_model', live && flowName(head, live)],
    ]);
  }
  if (task === 'speak') {
    return parametersOf([
      ['task', 'speak'],
      ['language', language],
      ['sample_rate', settings.sample_rate],
      ['voices', settings.voices],
      ['symbols', settings.symbols],
      ['ssml', settings.ssml],
      ['precision', precision],
    ]);
  }
  // The tensors' language is undefined unless it was given: no token's list of languages then forbids them.
  return { task: 'infer', language: language ?? 'zxx', precision, pipeline: head.pipeline ?? '', ...files };
}

const fileOf = (artifact: string): string => artifact.split('/').at(-1) as string;

/** Parts in the parameters; Triton's own label files have a label a line. */
const partFiles = ({ parts }: Head): Record<string, string> =>
  Object.fromEntries(Object.values(parts).map((artifact) => [fileOf(artifact), artifact]));

/**
 * Gives live streams a separate model of each network whose batches would pad their windows to the length of
 * a recording.
 */
function separateStreams(head: Head): Head {
  const recordings = head.flows.filter(({ suffix }) => suffix !== 'stream').flatMap(({ step }) => step);
  const shared = head.graphs.filter(
    (graph) => padsWindows(head, graph) && recordings.some(({ role }) => role === graph.role),
  );
  const own = new Map(shared.map(({ role }) => [role, `${role}-stream`]));
  return {
    ...head,
    graphs: [...head.graphs, ...shared.map((graph) => ({ ...graph, role: own.get(graph.role) ?? graph.role }))],
    flows: head.flows.map((flow) =>
      flow.suffix === 'stream'
        ? { ...flow, step: flow.step.map((one) => ({ ...one, role: own.get(one.role) ?? one.role })) }
        : flow,
    ),
  };
}

/**
 * Refuses artifacts that would leave their version of a model, or collide with another file. Artifact names
 * come from an archive, so its writer chose them.
 */
export function checkPlaces({ graphs, parts }: Head): BuildResult<undefined> {
  const beside = [...new Set(Object.values(parts))];
  for (const { artifact, external } of graphs) {
    const names = createNames();
    for (const own of ['config.pbtxt', 'configs/NAME.pbtxt', MARK, '1/model.onnx']) names.add(own, 'file');
    const folder = artifact.slice(0, artifact.lastIndexOf('/') + 1);
    const away = external.find((one) => folder === '' || !one.startsWith(folder));
    if (away !== undefined) return problem('unsafe', `the weights ${away} are not beside their network ${artifact}`);
    for (const file of [...external.map((one) => `1/${one.slice(folder.length)}`), ...beside.map(fileOf)]) {
      const clash = names.add(file, 'file');
      if (clash !== undefined) return problem('artifact', `two files of one model: ${clash}`);
    }
  }
  return ok(undefined);
}

/** Plans all folders of a pipeline: networks, ensembles, and the files beside them. */
export function planRepository(given: Head, targets: readonly Target[]): PlannedModel[] {
  const head = separateStreams(given);
  const networks = head.graphs.map((graph): PlannedModel => {
    const prefix = `${graph.artifact.slice(0, graph.artifact.lastIndexOf('/'))}/`;
    const weights = graph.external.map((artifact) => [`1/${artifact.slice(prefix.length)}`, artifact]);
    return {
      name: modelName(head, graph.role),
      configs: targets.map((target) => writeGraphConfig(head, graph, target)),
      files: { '1/model.onnx': graph.artifact, ...Object.fromEntries(weights) },
    };
  });
  const flows = head.flows.map((flow): PlannedModel => {
    const parameters = parametersFor(head, flow);
    return {
      name: flowName(head, flow),
      configs: targets.map((target) => writeFlowConfig(head, flow, target, parameters)),
      files: flow.suffix === '' ? partFiles(head) : {},
    };
  });
  return head.flows.length > 0
    ? [...networks, ...flows]
    : networks.map((model, at) => forCallers(head, model, at === 0));
}

/** Without an ensemble, callers use the networks directly, and the first one gets the files. */
function forCallers(head: Head, model: PlannedModel, isFirst: boolean): PlannedModel {
  const files = isFirst ? partFiles(head) : {};
  const named = isFirst
    ? Object.fromEntries(Object.entries(head.parts).map(([part, artifact]) => [part, fileOf(artifact)]))
    : {};
  const parameters = parametersOf({
    task: 'infer',
    language: head.settings.language_code ?? 'zxx',
    precision: precisionOf(head.graphs),
    pipeline: head.pipeline ?? '',
    ...named,
  });
  return {
    ...model,
    configs: model.configs.map((config) => ({ ...config, parameters })),
    files: { ...model.files, ...files },
  };
}
