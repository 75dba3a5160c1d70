// One run of the command line, from its arguments to its output. It speaks plain HTTP to the edge and uses
// nothing that other clients lack.
import { readFileSync } from 'node:fs';
import { type Answer, failedLocally, unreachable, wrong } from './answer.ts';
import { positionalsOf, readArguments } from './arguments.ts';
import type { Command } from './command.ts';
import { findCommand, groupOf } from './commands.ts';
import { helpOf, helpOfAll, helpOfGroup } from './help.ts';
import type { Arguments } from './options.ts';
import type { Environment } from './place.ts';
import { findToken, isToken } from './token.ts';

export interface Printed {
  readonly exit: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command. Errors go to `err` (as JSON with `--json`), results to `out`. */
export async function commandLine(words: readonly string[], environment: Environment): Promise<Printed> {
  const json = words.includes('--json');
  const { exit, text, value, note } = await answer(words, environment);
  const failed = exit !== 0 && (!json || (typeof value === 'object' && value !== null && 'error' in value));
  const printed = json ? JSON.stringify(value, undefined, 2) : text;
  const last = note === undefined ? '' : `${note}\n`;
  return { exit, out: failed ? '' : `${printed}\n`, err: `${failed ? `${printed}\n` : ''}${last}` };
}

const show = (help: string): Answer => ({ exit: 0, text: help, value: { help } });

async function answer(words: readonly string[], environment: Environment): Promise<Answer> {
  const [first = '', ...rest] = positionalsOf(words);
  if (first === 'help' && rest[0] !== 'version') return showHelp(rest);
  if (first === 'help' || first === 'version' || (first === '' && words.includes('--version'))) return showVersion();
  const command = findCommand([first, ...rest]);
  // Model-building commands parse their own arguments.
  if (command?.own) return (await import('./models/build.ts')).buildModel(without(words, '--json', first));
  const given = readArguments(words, environment);
  if ('problem' in given) return wrong(`${given.problem}; \`auricle ${`help ${first}`.trim()}\` explains`);
  if (given.help) return showHelp([first, ...rest]);
  return command?.run ? run(command, command.run, given, environment) : unknown([first, ...rest]);
}

async function run(
  command: Command,
  start: NonNullable<Command['run']>,
  given: Arguments,
  environment: Environment,
): Promise<Answer> {
  const { local } = command;
  const isLocal = typeof local === 'function' ? local(given) : local === true;
  const token = isLocal ? '' : findToken(given, environment);
  if (token === undefined)
    return wrong('no token: give --token, set AURICLE_TOKEN, or start the local stack with `npm start`');
  if (token !== '' && !isToken(token))
    return wrong('the token is malformed: it has spaces, line breaks or other characters that tokens lack');
  try {
    return await start(given, { authorization: `Bearer ${token}` }, token);
  } catch (error) {
    return isLocal ? failedLocally(error) : unreachable(given.edge, error);
  }
}

function showHelp([first = '', second]: readonly string[]): Answer {
  if (first === '') return show(helpOfAll());
  const command = findCommand([first, ...(second === undefined ? [] : [second])]);
  if (!command && second !== undefined) return unknown([first, second]);
  const isGroup = groupOf(first).length > 1 && (command === undefined || command.name === first);
  const help = [...(command ? [helpOf(command)] : []), ...(isGroup ? [helpOfGroup(first)] : [])];
  return help.length > 0 ? show(help.join('\n\n')) : unknown([first]);
}

/** Explains that the arguments name no command. */
function unknown([first = '', second]: readonly string[]): Answer {
  if (first === '') return wrong(helpOfAll());
  if (groupOf(first).length === 0) return wrong(`there is no command "${first}"\n\n${helpOfAll()}`);
  return wrong(second === undefined ? helpOfGroup(first) : `there is no "${first} ${second}"\n\n${helpOfGroup(first)}`);
}

function showVersion(): Answer {
  const manifest: { version: string } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  return { exit: 0, text: `auricle ${manifest.version}`, value: { version: manifest.version } };
}

/** Returns the words without the first occurrence of each name. */
const without = (words: readonly string[], ...names: readonly string[]): string[] =>
  names.reduce((left, name) => left.filter((_, at) => at !== left.indexOf(name)), [...words]);
