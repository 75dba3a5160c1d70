import { ok } from '../../../../shared/result.ts';
import { options, spellings, whyNot } from '../pipeline/options.ts';
import { isPipeline, type PipelineName, pipelines } from '../pipeline/pipelines.ts';
import { type BuildResult, problem } from '../problem.ts';

/** A parsed build command. */
export interface BuildCommand {
  readonly pipeline: PipelineName;
  /** `path` or `path:key`. */
  readonly out: string;
  readonly sources: readonly string[];
  readonly settings: Readonly<Record<string, string>>;
  readonly force: boolean;
  /** Cipher of the new archive; a flag of ours, since the public tools have one cipher only. */
  readonly cipher?: string;
}

/** Pipelines by the folder names of the public tools. */
const configPaths: Readonly<Record<string, PipelineName>> = {
  asr: 'speech_recognition',
  tts: 'speech_synthesis',
  nmt: 'translation',
  punctuator: 'punctuation',
};

const isHydra = (words: readonly string[]): boolean =>
  words.some((word) => /^--config-(path|name)(=|$)/.test(word) || /^\+{0,2}(output_path|source_path)=/.test(word));

/**
 * Parses both public spellings: `speech_recognition -f OUT:KEY IN:KEY --name=x`, and `--config-path=…
 * --config-name=… output_path=… 'source_path=[…]' force=true name=x`.
 */
export const readCommand = (words: readonly string[]): BuildResult<BuildCommand> =>
  isHydra(words) ? readHydra(words) : readClassic(words);

function readClassic(words: readonly string[]): BuildResult<BuildCommand> {
  const operands: string[] = [];
  const settings: Record<string, string> = {};
  let [force, cipher]: [boolean, string | undefined] = [false, undefined];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    if (word === '-f' || word === '--force') {
      force = true;
      continue;
    }
    if (!word.startsWith('-')) {
      operands.push(word);
      continue;
    }
    const [, name = '', joined] = /^--([\w.-]+)(?:=(.*))?$/s.exec(word) ?? [];
    if (name === '') return problem('written', `${word} is no option`);
    const isFlag = Object.hasOwn(options, name) && options[name]?.shape === 'flag';
    const next = words[at + 1];
    let value = joined;
    if (value === undefined) {
      // A flag needs no value; every other option takes the next word.
      const takes = !isFlag || /^(true|false)$/i.test(next ?? '');
      value = takes ? next : 'true';
      if (takes) at++;
    }
    // An unknown option takes no value here; its name is refused below.
    if (value === undefined && !Object.hasOwn(options, name) && name !== 'cipher') value = '';
    if (value === undefined) return problem('written', `--${name} needs a value`);
    if (name === 'cipher') cipher = value;
    else {
      const taken = put(settings, name, value);
      if (!taken.ok) return taken;
    }
  }
  const [pipeline = '', out, ...sources] = operands;
  if (!isPipeline(pipeline))
    return problem('written', `"${pipeline}" is no pipeline: ${Object.keys(pipelines).join(', ')}`);
  const refused = refusedOf(settings, pipeline);
  if (!refused.ok) return refused;
  if (out === undefined || sources.length === 0)
    return problem('written', 'an archive to write and at least one to read are needed');
  return ok({ pipeline, out, sources, settings, force, ...(cipher !== undefined && { cipher }) });
}

function readHydra(words: readonly string[]): BuildResult<BuildCommand> {
  const settings: Record<string, string> = {};
  const given: Record<string, string> = {};
  for (const [at, word] of words.entries()) {
    if (word === '-f' || word === '--force') return problem('written', 'in this spelling it is force=true, not -f');
    if (/^--config-(path|name)$/.test(words[at - 1] ?? '')) continue;
    const config = /^--config-(path|name)(?:=(.*))?$/s.exec(word);
    const [, name = '', value = ''] = /^\+{0,2}([\w.-]+)=(.*)$/s.exec(word) ?? [];
    if (config) given[`config_${config[1]}`] = config[2] ?? words[at + 1] ?? '';
    else if (name === '') return problem('written', `${word} is no option in this spelling: NAME=VALUE`);
    else if (/^(output_path|source_path|force|pipeline|cipher)$/.test(name)) given[name] = value;
    else {
      const taken = put(settings, name, unquoted(value));
      if (!taken.ok) return taken;
    }
  }
  const last = (given.config_path ?? '').split(/[./]/).at(-1) ?? '';
  const pipeline = given.pipeline ?? configPaths[last] ?? last;
  if (!isPipeline(pipeline))
    return problem(
      'written',
      `--config-path=${given.config_path ?? ''} names no pipeline: ${Object.keys(pipelines).join(', ')}`,
    );
  const refused = refusedOf(settings, pipeline);
  if (!refused.ok) return refused;
  const half = /^(streaming|offline)/.exec(given.config_name ?? '')?.[1];
  if (pipeline === 'speech_recognition' && half === undefined)
    return problem('written', '--config-name is streaming… or offline…');
  if (pipeline === 'speech_recognition' && half) settings[half] ??= 'true';
  const sources = listOf(given.source_path ?? '');
  if (!given.output_path || sources.length === 0)
    return problem('written', "output_path=… and 'source_path=[…]' are needed");
  if (!/^(true|false)?$/i.test(given.force ?? ''))
    return problem('written', `force=${given.force}: true or false was expected`);
  return ok({
    pipeline,
    out: unquoted(given.output_path),
    sources,
    settings,
    force: /^true$/i.test(given.force ?? ''),
    ...(given.cipher !== undefined && { cipher: given.cipher }),
  });
}

function refusedOf(settings: Readonly<Record<string, string>>, pipeline: PipelineName): BuildResult<undefined> {
  const reasons = Object.keys(settings).map((name) => whyNot(name, pipeline));
  const refused = reasons.filter((reason) => reason !== undefined);
  return refused.length === 0 ? ok(undefined) : problem('unsupported', refused.join('; '));
}

function put(settings: Record<string, string>, written: string, value: string): BuildResult<undefined> {
  const name = spellings[written] ?? written;
  if (Object.hasOwn(settings, name)) return problem('written', `${name} is given twice`);
  const isFlag = Object.hasOwn(options, name) && options[name]?.shape === 'flag';
  settings[name] = isFlag ? value.toLowerCase() : value;
  return ok(undefined);
}

const unquoted = (text: string): string => /^(['"])(.*)\1$/s.exec(text)?.[2] ?? text;

const listOf = (text: string): string[] => {
  const inner = /^\[(.*)\]$/s.exec(text)?.[1];
  return (inner === undefined ? [text] : inner.split(','))
    .map((one) => unquoted(one.trim()))
    .filter((one) => one !== '');
};
