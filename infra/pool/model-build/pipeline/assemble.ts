import { ok } from '../../../../shared/result.ts';
import { type Flow, FORMAT, type Graph, type Head, type Manifest, nameShape } from '../archive/manifest.ts';
import { type BuildResult, problem } from '../problem.ts';
import { complaintAbout, options, whyNot } from './options.ts';
import { type PartRule, type Pipeline, type PipelineName, pipelineOf, pipelines } from './pipelines.ts';
import { checkTiming } from './timing.ts';
import { wireFlow } from './wire.ts';

export interface Assembled {
  readonly head: Head;
  /** New names of each archive's artifacts in the pipeline. */
  readonly renamed: readonly Readonly<Record<string, string>>[];
  readonly advice: readonly string[];
}

/** Roles of networks that are imported alone under the role `network`, by class. */
const roleOf: Readonly<Record<string, string>> = { FastPitchModel: 'spectrogram', HifiGanModel: 'vocoder' };

/** Inputs and outputs that the agent requires of a recogniser and of a voice. */
const doors = {
  transcribe: [
    ['AUDIO', 'AUDIO_LENGTH'],
    ['LOG_PROBS', 'FRAMES'],
  ],
  speak: [['TEXT', 'VOICE', 'RATE'], ['AUDIO']],
} as const;

const sameNames = (tensors: readonly { name: string }[], names: readonly string[]): boolean =>
  tensors.length === names.length && names.every((name) => tensors.some((tensor) => tensor.name === name));

/** Inputs of a voice but the one that some voices have for SSML. */
const withoutPitch = <T extends { readonly name: string }>(inputs: readonly T[]): readonly T[] =>
  inputs.filter(({ name }) => name !== 'PITCH');

/** Checks the given options, except files. */
function checkOptions(pipeline: PipelineName, given: Readonly<Record<string, string>>): BuildResult<undefined> {
  for (const [name, value] of Object.entries(given)) {
    const refused = whyNot(name, pipeline);
    if (refused !== undefined) return problem('unsupported', refused);
    const wrong = complaintAbout(name, value);
    if (wrong !== undefined) return problem('written', wrong);
  }
  if (given.streaming === 'true' && given.offline === 'true')
    return problem('written', 'streaming or offline, not both');
  return ok(undefined);
}

/**
 * Builds one pipeline from the archives of its networks and the build options, or reports the first missing
 * or unfit part. `parts` are the files of options.
 */
export function assemble(
  pipeline: PipelineName,
  archives: readonly Manifest[],
  given: Readonly<Record<string, string>>,
  parts: Readonly<Record<string, string>>,
): BuildResult<Assembled> {
  const checked = checkOptions(pipeline, given);
  if (!checked.ok) return checked;
  const classes = [...new Set(archives.flatMap((archive) => archive.classes))];
  const own: readonly string[] = pipelines[pipeline].classes;
  const other = classes.find((one) => !own.includes(one));
  if (other !== undefined) {
    const where = pipelineOf([other]);
    return problem('artifact', `${other} is no model for ${pipeline}${where ? `, but for ${where}` : ''}`);
  }
  const placed = archives.map(place);
  const graphs = graphsOf(placed);
  if (!graphs.ok) return graphs;
  const flows = flowsOf(pipeline, archives, graphs.value, given);
  if (!flows.ok) return flows;
  const allParts = { ...Object.assign({}, ...archives.map((archive) => archive.parts)), ...parts } as Record<
    string,
    string
  >;
  const settings = settle(pipeline, archives, given);
  const timing = checkTiming(settings);
  if (!timing.ok) return timing;
  const judged = judge(pipeline, { flows: flows.value, graphs: graphs.value, parts: allParts, settings });
  if (!judged.ok) return judged;
  const name = [given.name ?? archives[0]?.name ?? '', given.domain_name].filter((one) => one).join('-');
  if (!nameShape.safeParse(name).success || name.includes('/'))
    return problem('written', `"${name}" is no name for a model`);
  const head: Head = {
    format: FORMAT,
    kind: 'pipeline',
    name,
    pipeline,
    classes,
    graphs: graphs.value.filter(({ role }) => isUsed(role, judged.value.flows)),
    flows: [...judged.value.flows],
    settings: { ...settings, name, task: judged.value.task },
    parts: allParts,
  };
  return ok({ head, renamed: placed.map((one) => one.renamed), advice: judged.value.advice });
}

/** Without flows, callers use all networks. */
const isUsed = (role: string, flows: readonly Flow[]): boolean =>
  flows.length === 0 || flows.some(({ step }) => step.some((one) => one.role === role));

type Placed = { readonly graphs: readonly Graph[]; readonly renamed: Readonly<Record<string, string>> };

/** Gives a network that was imported alone the role of its class, and its files a folder of that name. */
function place({ classes, graphs }: Manifest): Placed {
  const role = classes.length === 1 ? roleOf[classes[0] ?? ''] : undefined;
  if (role === undefined) return { graphs, renamed: {} };
  const renamed: Record<string, string> = {};
  const move = (name: string) => {
    const moved = name.replace(/^network\//, `${role}/`);
    renamed[name] = moved;
    return moved;
  };
  return {
    graphs: graphs.map((graph) =>
      graph.role === 'network'
        ? { ...graph, role, artifact: move(graph.artifact), external: graph.external.map(move) }
        : graph,
    ),
    renamed,
  };
}

function graphsOf(placed: readonly Placed[]): BuildResult<Graph[]> {
  const graphs = placed.flatMap((one) => one.graphs);
  const roles = graphs.map(({ role }) => role);
  const twice = roles.find((role, at) => roles.indexOf(role) !== at);
  return twice === undefined ? ok(graphs) : problem('artifact', `two archives have a network "${twice}"`);
}

/** Returns the flows of an archive, or the one of the pipeline's order. */
function flowsOf(
  pipeline: PipelineName,
  archives: readonly Manifest[],
  graphs: readonly Graph[],
  given: Readonly<Record<string, string>>,
): BuildResult<readonly Flow[]> {
  const brought = archives.flatMap(({ flows }) => flows);
  if (brought.length > 0) return ok(brought);
  const { ways }: Pipeline = pipelines[pipeline];
  const has = (role: string) => graphs.some((graph) => graph.role === role);
  const way = ways.find((roles) => roles.every((role) => role.endsWith('?') || has(role)));
  if (!way) {
    const needed = (ways[0] ?? []).filter((role) => !role.endsWith('?'));
    const missing = needed.filter((role) => !has(role)).join(', ');
    return problem(
      'artifact',
      `${pipeline} needs the exported network ${missing}: import the model with --graph ${needed[0]}=FILE.onnx`,
    );
  }
  const roles = way.map((role) => role.replace('?', ''));
  const extra = graphs.find(({ role }) => !roles.includes(role));
  if (extra) return problem('artifact', `${pipeline} has no place for the network "${extra.role}"`);
  // A decoder is called word by word, so its caller holds the three together, and no ensemble can.
  if (pipeline === 'translation') return ok([]);
  const ordered = roles.flatMap((role) => graphs.filter((graph) => graph.role === role));
  const flow = wireFlow(ordered, given.wire);
  return flow.ok ? ok([flow.value]) : flow;
}

/** Merges settings: options over archives over defaults. */
function settle(
  pipeline: PipelineName,
  archives: readonly Manifest[],
  given: Readonly<Record<string, string>>,
): Record<string, string> {
  const settings: Record<string, string> = {};
  const settingsOfArchives: Record<string, string> = Object.assign({}, ...archives.map((archive) => archive.settings));
  for (const [name, { of, fallback, shape }] of Object.entries(options)) {
    if (!of.includes(pipeline) || shape === 'file') continue;
    const value = given[name] ?? settingsOfArchives[name] ?? fallback;
    if (value !== undefined) settings[name] = value;
  }
  return settings;
}

interface Judged {
  readonly flows: readonly Flow[];
  readonly task: Pipeline['task'];
  readonly advice: readonly string[];
}

/** Guesses the pipeline of a network without a class from its tensors. */
function meantFor([flow]: readonly Flow[]): PipelineName | undefined {
  if (!flow) return undefined;
  const is = ([takes, gives]: readonly [readonly string[], readonly string[]]) =>
    sameNames(withoutPitch(flow.input), takes) && sameNames(flow.output, gives);
  if (is(doors.transcribe)) return 'speech_recognition';
  return is(doors.speak) ? 'speech_synthesis' : undefined;
}

interface PipelineParts {
  readonly flows: readonly Flow[];
  readonly graphs: readonly Graph[];
  readonly parts: Record<string, string>;
  readonly settings: Record<string, string>;
}

/** Checks that the pipeline is complete, and derives what the agent can do with it. */
function judge(pipeline: PipelineName, all: PipelineParts): BuildResult<Judged> {
  const { flows, parts, settings } = all;
  const rules: Pipeline = pipelines[pipeline];
  const meant = meantFor(flows);
  if (meant !== undefined && meant !== pipeline)
    return problem('artifact', `by what it takes and gives this is no model for ${pipeline}, but for ${meant}`);
  if (pipeline === 'speech_recognition') return judgeRecogniser(all);
  const missing = rules.parts.find(({ part, needed }: PartRule) => needed && parts[part] === undefined);
  if (missing)
    return problem(
      'artifact',
      `${pipeline} needs ${missing.part}: import the model with --artifact ${missing.part}=FILE`,
    );
  const [flow] = flows;
  if (pipeline !== 'speech_synthesis' || !flow) return ok({ flows, task: 'infer', advice: [] });
  const [takes, gives] = doors.speak;
  const speaks =
    sameNames(withoutPitch(flow.input), takes) &&
    sameNames(flow.output, gives) &&
    settings.voices !== undefined &&
    settings.symbols !== undefined;
  if (speaks && settings.language_code === undefined)
    return problem('written', 'language_code says which language it speaks');
  const advice = speaks
    ? []
    : [
        `the agent speaks with voices that take ${takes.join(', ')} and give ${gives.join(', ')}, with voices and symbols: this one is for callers of tensors`,
      ];
  return ok({ flows, task: speaks ? 'speak' : 'infer', advice });
}

function judgeRecogniser({ flows, graphs, parts, settings }: PipelineParts): BuildResult<Judged> {
  const live = flows.some(({ suffix }) => suffix === 'stream');
  if (settings.streaming === 'true' && !live) {
    return problem(
      'artifact',
      'streaming needs a network that remembers between chunks (states), and the archive has none',
    );
  }
  const wantsLive = live && settings.offline !== 'true';
  settings.streaming = String(wantsLive);
  settings.offline = String(!wantsLive);
  const padded = wantsLive && ['left_padding_size', 'right_padding_size'].find((name) => Number(settings[name]) > 0);
  if (padded) return problem('unsupported', `${padded} must be 0 here: a network that remembers needs no sound twice`);
  const kept = wantsLive ? flows : flows.filter(({ suffix }) => suffix === '');
  const [flow] = kept;
  if (parts.vocabulary === undefined && parts.tokenizer === undefined) {
    return problem('artifact', 'speech_recognition needs vocabulary: import the model with --artifact vocabulary=FILE');
  }
  const [takes, gives] = doors.transcribe;
  const atDoor = flow !== undefined && sameNames(flow.input, takes) && sameNames(flow.output, gives);
  const recognises = atDoor && parts.vocabulary !== undefined && settings.decoder !== 'pass_through';
  if (!recognises) {
    const advice =
      settings.decoder === 'pass_through'
        ? []
        : [
            `the agent hears with models that take ${takes.join(', ')} and give ${gives.join(', ')}, with a vocabulary: this one is for callers of tensors`,
          ];
    return ok({ flows: kept, task: 'infer', advice });
  }
  for (const name of ['language_code', 'ms_per_timestep']) {
    if (settings[name] === undefined)
      return problem('written', `${name} is needed: neither the archive nor an option says it`);
  }
  if (settings.sample_rate !== '16000')
    return problem('unsupported', `sample_rate=${settings.sample_rate}: the agent gives every model 16000 Hz (M6)`);
  if (settings.decoder === 'greedy') {
    // Greedy decoding uses neither the lexicon nor the language model.
    delete parts.lexicon;
    delete parts.language_model;
  } else if (settings.decoder === 'flashlight' && parts.lexicon === undefined) {
    return problem('artifact', 'decoder=flashlight needs words: decoding_lexicon=FILE');
  }
  const tied = graphs.some(({ batched }) => !batched);
  return ok({ flows: kept, task: 'transcribe', advice: tied ? ['a network of it takes one request at a time'] : [] });
}
