// auricle model import|build|deploy|init|inspect|adapt|quantise|measure: local, without edge or token.
import { build } from '../../pool/model-build/build/build.ts';
import { readCommand } from '../../pool/model-build/build/read-command.ts';
import { describeOptions } from '../../pool/model-build/pipeline/options.ts';
import { isPipeline } from '../../pool/model-build/pipeline/pipelines.ts';
import { type BuildResult, type Problem, problems } from '../../pool/model-build/problem.ts';
import type { Answer } from '../answer.ts';
import { operandCounts, usageOf } from '../command.ts';
import { helpOf } from '../help.ts';
import { runAdapt } from './adapt.ts';
import { buildCommands } from './build-commands.ts';
import { runDeploy, runInit } from './deploy.ts';
import { runImport } from './import.ts';
import { runInspect } from './inspect.ts';
import { runMeasure } from './measure.ts';
import { runQuantise } from './quantise.ts';
import { readWords, type Words } from './words.ts';

/** Commands that take options and operands. */
const verbs = new Map<string, (given: Words) => Promise<BuildResult<Answer>>>([
  ['import', runImport],
  ['deploy', runDeploy],
  ['init', runInit],
  ['inspect', runInspect],
  ['adapt', runAdapt],
  ['quantise', runQuantise],
  ['measure', runMeasure],
]);

const refusedBy = ({ kind, text }: Problem): Answer => ({
  exit: problems[kind].exit,
  // An invalid command line is told as for other commands.
  text: kind === 'written' ? text : `${kind}: ${text}`,
  value: { error: { kind, message: text } },
});

const show = (text: string): Answer => ({ exit: 0, text, value: { help: text } });

/** Runs the words after `auricle model`, without `--json`. */
export async function buildModel([name = '', ...words]: readonly string[]): Promise<Answer> {
  const row = buildCommands.find((one) => one.name === `model ${name}`);
  if (!row?.own) throw new Error(`unknown command: model ${name}`);
  if (words.includes('-h') || words.includes('--help')) {
    const pipeline = words.find(isPipeline);
    return show(name === 'build' && pipeline ? describeOptions(pipeline) : helpOf(row));
  }
  if (name === 'build') {
    const built = await runBuild(words);
    return built.ok ? built.value : refusedBy(built.refusal);
  }
  // A deployment also takes options of pipelines.
  const given = readWords(words, row.own, name === 'deploy');
  if (!given.ok) return refusedBy(given.refusal);
  const [fewest, most] = operandCounts(row);
  const count = given.value.operands.length;
  if (count < fewest || count > most) return refusedBy({ kind: 'written', text: `usage: auricle ${usageOf(row)}` });
  const made = await verbs.get(name)?.(given.value);
  if (!made) throw new Error(`model ${name} is listed and not there`);
  return made.ok ? made.value : refusedBy(made.refusal);
}

async function runBuild(words: readonly string[]): Promise<BuildResult<Answer>> {
  const command = readCommand(words);
  if (!command.ok) return command;
  const built = await build(command.value, process.env);
  if (!built.ok) return built;
  const { file, manifest, advice } = built.value;
  const { name, pipeline, settings } = manifest;
  const text = [`${file}: ${pipeline} "${name}", ${settings.task}`, ...advice.map((one) => `note: ${one}`)].join('\n');
  return { ok: true, value: { exit: 0, text, value: { file, name, pipeline, settings, advice } } };
}
