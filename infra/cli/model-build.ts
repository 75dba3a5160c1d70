// auricle model import|build|deploy|init|inspect|quantise|measure: on this machine. No edge is asked and no token needed.
import { build } from '../pool/models/build/build.ts';
import { readCommand } from '../pool/models/build/read-command.ts';
import { describeOptions } from '../pool/models/pipeline/options.ts';
import { isPipeline, pipelines } from '../pool/models/pipeline/pipelines.ts';
import { type Made, type Problem, problems } from '../pool/models/problem.ts';
import type { Answer } from './answer.ts';
import { runDeploy, runInit } from './model-deploy.ts';
import { runImport } from './model-import.ts';
import { runInspect } from './model-inspect.ts';
import { runMeasure } from './model-measure.ts';
import { runQuantise } from './model-quantise.ts';
import { readWords, type Words } from './model-words.ts';

export const buildUsage = `model import SOURCE --out FILE[:KEY]       a .nemo, an .onnx or a folder of a Triton repository
  model build PIPELINE OUT[:KEY] IN[:KEY]… one archive of a pipeline (-h lists its options)
  model deploy IN[:KEY]… REPOSITORY        archives to a Triton model repository
  model init --archives DIR --models DIR   every .apipeline and .rmir of a folder
  model inspect FILE[:KEY]                 what is in an archive
  model quantise FOLDER --out DIR          a model of a repository with 8 bits
  model measure REPOSITORY MODEL --out FILE  evidence for the first gate`;

const help = `auricle model VERB …

  Archives: .amodel of one model (import), .apipeline of a pipeline (build; .rmir, as others call theirs, is read as one).

  import SOURCE --out FILE[:KEY]
      SOURCE: a .nemo, an .onnx, or a folder of a Triton repository with ONNX networks; looked into before it is used
      --role ROLE              which network of its pipeline an .onnx is (default network)
      --graph ROLE=FILE.onnx   a further network, such as one exported from a .nemo (repeatable)
      --artifact PART=FILE     a file that goes with it: vocabulary, class_labels, … (repeatable)
      --class NAME             what an ONNX file was trained as (repeatable), --name NAME, --set OPTION=VALUE (repeatable)
      --cipher aes|sm4         with a key; --plain ARTIFACT leaves one unsealed (repeatable)
  build PIPELINE [-f] OUT[:KEY] IN[:KEY]… [--OPTION=VALUE …]
  build --config-path=…asr --config-name=streaming output_path=OUT 'source_path=[IN]' force=true OPTION=VALUE …
      PIPELINE: ${Object.keys(pipelines).join(', ')}
      build PIPELINE -h lists the options of a pipeline; --cipher aes|sm4
  deploy [-f] IN[:KEY]… REPOSITORY [--OPTION=VALUE …]
      --target gpu|mig:PROFILE|cpu|jetson   where it will run (repeatable; default cpu). The first is config.pbtxt, the
                               others are configs/NAME.pbtxt for Triton's --model-config-name
      --gpus 0,1,2,3           instances on each of these; --instances N for each; --accelerator none
  init --archives DIR --models DIR [--key KEY] [-f] [--target …]
      deploys every .apipeline and .rmir of DIR; models that are there already stay as they are unless -f
  inspect FILE[:KEY]           with a key its content is checked, too
  quantise FOLDER --out DIR    a model of a Triton repository with one ONNX network, as a model with weights of 8 bits
      --static                 activations by scales of samples, not as they come; wants --calibrate
      --calibrate DIR          the samples: KServe v2 requests (.json), or recordings for a featurizer
      --features FOLDER        the model that makes the network's inputs of sound
      --samples N              how many of them, spread over DIR (default 1000)
  quantise --watch MODEL… --models DIR --out DIR --key FILE | --as NAME [--calibrate DIR] [--once] [--edge URL] [--token T]
      makes smaller revisions of those of MODEL that missed what was promised of them, and registers them
      --models DIR             a repository with their files (repeatable)
      --once                   ends when nothing is wanted
  measure REPOSITORY MODEL --out FILE    what the first gate asks for, for promote … --evidence FILE (GATES.md)
      without more             scan: every file of the revision is looked into
      --engine URL             load: the engine has its models ready and says of them what the folders say
      --recordings DIR         latency: a second of sound to LOG_PROBS, 95th percentile of windows until three agree.
                               DIR has a list, JSON or a line each: {"file": …, "text": …, "speaker": …}
      --sla MS                 what it is held against; not needed where a promise is signed
      --parallel N             callers at once meanwhile (default 1)
      --against URL[#MODEL]    quality: word errors of each speaker, of it and of the model at that engine (default: the same
                               name); none: there is nothing before it
      --against-models DIR     the repository of the other one, where it is decoded by other files
      --language TAG           what they speak, of a model with several
      Memory is not measured: no engine tells what one revision needs. A verdict is no exit code: the gate judges.

  -f, --force                  overwrites what this tool wrote; never what somebody else put there
  --json                       the answer as JSON
  KEY                          env:NAME, file:PATH, or the key itself

exit codes: 0 done
${Object.entries(problems)
  .map(([kind, { exit, means }]) => `  ${String(exit).padStart(2)}  ${kind}: ${means}`)
  .join('\n')}
`;

type Verb = (words: readonly string[], given: Words) => Promise<Made<Answer>>;

const verbs = new Map<string, Verb>([
  ['import', (_, given) => runImport(given)],
  ['build', (words) => runBuild(words)],
  ['deploy', (_, given) => runDeploy(given)],
  ['init', (_, given) => runInit(given)],
  ['inspect', (_, given) => runInspect(given)],
  ['quantise', (_, given) => runQuantise(given)],
  ['measure', (_, given) => runMeasure(given)],
]);

const refusedBy = ({ kind, text }: Problem): Answer => ({
  exit: problems[kind].exit,
  text: `${kind}: ${text}`,
  value: { error: { kind, message: text } },
});

const show = (text: string): Answer => ({ exit: 0, text, value: { help: text } });

export const isBuildVerb = (name: string | undefined): boolean => verbs.has(name ?? '');

/** What follows `auricle model`, without `--json`. */
export async function buildModel(all: readonly string[]): Promise<Answer> {
  const [name = '', ...words] = all;
  const verb = verbs.get(name);
  const asks = all.includes('-h') || all.includes('--help');
  if (!verb) return asks ? show(help) : refusedBy({ kind: 'written', text: `there is no "model ${name}"\n\n${help}` });
  if (asks) {
    const pipeline = words.find(isPipeline);
    return show(name === 'build' && pipeline ? describeOptions(pipeline) : help);
  }
  const given = name === 'build' ? undefined : readWords(words);
  if (given && !given.ok) return refusedBy(given.refusal);
  const made = await verb(words, given?.value ?? { operands: [], flags: {}, force: false });
  return made.ok ? made.value : refusedBy(made.refusal);
}

async function runBuild(words: readonly string[]): Promise<Made<Answer>> {
  const command = readCommand(words);
  if (!command.ok) return command;
  const built = await build(command.value, process.env);
  if (!built.ok) return built;
  const { file, manifest, advice } = built.value;
  const { name, pipeline, settings } = manifest;
  const text = [`${file}: ${pipeline} "${name}", ${settings.task}`, ...advice.map((one) => `note: ${one}`)].join('\n');
  return { ok: true, value: { exit: 0, text, value: { file, name, pipeline, settings, advice } } };
}
