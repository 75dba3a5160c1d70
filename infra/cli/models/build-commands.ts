// The rows of `auricle model …` that build models on this machine. `words.ts` reads their options, which may repeat.
import { pipelines } from '../../pool/model-build/pipeline/pipelines.ts';
import { problems } from '../../pool/model-build/problem.ts';
import type { Command } from '../command.ts';
import { type Option, options } from '../options.ts';

const { force, json, help, edge, token, state, as, language } = options;
const cipher: Option = { value: 'aes|sm4', means: 'cipher of the archive, with a key' };
const out: Option = { value: 'FILE[:KEY]', means: 'file to write' };
const folderOut: Option = { value: 'DIR', means: 'folder to write' };
const samples: Option = { value: 'N', means: 'how many samples, spread over the folder; default 1000' };
const calibrate: Option = {
  value: 'DIR',
  means: 'samples: KServe v2 requests (.json), or recordings for a featurizer',
};
const targets: Readonly<Record<string, Option>> = {
  target: {
    value: 'NAME',
    many: true,
    means: 'gpu, mig:PROFILE, cpu or jetson; default cpu; the first is config.pbtxt',
  },
  gpus: { value: '0,1,…', means: 'instances on each of these' },
  instances: { value: 'N', means: 'instances on each GPU' },
  accelerator: { value: 'NAME', means: 'none turns it off' },
};
const ending = `KEY is env:NAME, file:PATH, or the key itself. Archives: .amodel of one model, .apipeline of a pipeline (.rmir, too).

Exit codes:
   0  done
${Object.entries(problems)
  .map(([kind, { exit, means }]) => `  ${String(exit).padStart(2)}  ${kind}: ${means}`)
  .join('\n')}`;

/** `usage` is the name of the command and its operands. */
const row = (usage: string, does: string, own: NonNullable<Command['own']>, more = ''): Command => {
  const [name, ...operands] = usage.split(' ');
  return {
    ...{ name: `model ${name}`, operands: operands.join(' '), does, own: { ...own, force, json, help }, local: true },
    more: `${more === '' ? '' : `${more}\n\n`}${ending}`,
  };
};

export const buildCommands: readonly Command[] = [
  row('import SOURCE', 'makes an archive of a .nemo, an .onnx, or a folder of a Triton repository', {
    out,
    role: { value: 'ROLE', means: 'role of an .onnx in its pipeline; default network' },
    graph: { value: 'ROLE=FILE.onnx', many: true, means: 'a further network, such as one exported from a .nemo' },
    artifact: { value: 'PART=FILE', many: true, means: 'a file that goes with it: vocabulary, class_labels, …' },
    class: { value: 'NAME', many: true, means: 'what an ONNX file was trained as' },
    name: { value: 'NAME', means: 'name of the model' },
    set: { value: 'OPTION=VALUE', many: true, means: 'an option of its pipeline' },
    plain: { value: 'ARTIFACT', many: true, means: 'leaves one unsealed' },
    cipher,
  }),
  row(
    'build PIPELINE OUT[:KEY] IN[:KEY]…',
    'makes one archive of a pipeline',
    { cipher },
    `Pipelines: ${Object.keys(pipelines).join(', ')}. \`model build PIPELINE -h\` lists the options of one, as
--OPTION=VALUE. The other spelling is --config-path=…asr --config-name=streaming output_path=OUT 'source_path=[IN]'.`,
  ),
  row(
    'deploy IN[:KEY]… REPOSITORY',
    'makes models of a Triton repository of archives',
    targets,
    'Options of pipelines may follow as --OPTION=VALUE. Further targets are configs/NAME.pbtxt, for --model-config-name.',
  ),
  row('init', 'deploys every .apipeline and .rmir of a folder; models that are there stay unless -f', {
    archives: { value: 'DIR', means: 'folder of the archives' },
    models: { value: 'DIR', means: 'repository to write' },
    key: { value: 'KEY', means: 'key of the archives' },
    ...targets,
  }),
  row('inspect FILE[:KEY]', 'shows the content of an archive; with a key verifies it', {}),
  row('adapt FOLDER TEXT', 'makes a revision whose language model and lexicon are adapted to a text of its domain', {
    out: { value: 'DIR', means: 'repository to write; it must not exist' },
    weight: { value: 'SHARE', means: "the text's share in each probability; default 0.5" },
  }),
  row('quantise [FOLDER|MODEL…]', 'makes an 8-bit model; with --watch of each MODEL revision that missed its promise', {
    out: folderOut,
    static: { means: 'activations by scales of samples; wants --calibrate' },
    calibrate,
    features: { value: 'FOLDER', means: "model that makes the network's inputs of sound" },
    samples,
    watch: { means: 'makes and registers smaller revisions of those that missed their promise' },
    once: { means: 'with --watch: ends when nothing is wanted' },
    models: { value: 'DIR', many: true, means: 'with --watch: a repository with their files' },
    key: { value: 'FILE', means: 'with --watch: PEM file to sign with' },
    ...{ as, edge, token, state },
  }),
  row(
    'measure REPOSITORY MODEL',
    'measures evidence for the first gate, for promote --evidence (GATES.md)',
    {
      out: { value: 'FILE', means: 'file to write' },
      engine: { value: 'URL', means: 'load: the engine has its models ready and describes them as the folders do' },
      recordings: {
        value: 'DIR',
        means: 'latency: 95th percentile for a second of sound. DIR lists file, text, speaker',
      },
      sla: { value: 'MS', means: 'latency to judge against; not needed with a signed promise' },
      parallel: { value: 'N', means: 'callers at once meanwhile; default 1' },
      against: {
        value: 'URL[#MODEL]',
        means: 'quality: word errors of each speaker against that engine; none: no other',
      },
      'against-models': { value: 'DIR', means: 'repository of the other revision, if it is decoded with other files' },
      language,
    },
    'Without options: scan only. Memory is not measured. A FAIL does not change the exit code.',
  ),
];
