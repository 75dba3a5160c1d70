// Help, generated from the table of commands.
import { type Command, takenBy, usageOf } from './command.ts';
import { commands, groupOf } from './commands.ts';
import { commonOptions, edgeOptions, flagOf, type Option, options } from './options.ts';

/** Width of the left column of a list. */
const LEFT = 26;

const lineOf = (left: string, right: string): string =>
  left.length < LEFT - 2 ? `  ${left.padEnd(LEFT - 2)}${right}` : `  ${left}\n${' '.repeat(LEFT)}${right}`;

const listed = (name: string, { value, short, many, default: otherwise, means }: Option): string => {
  const flag = `${short === undefined ? '' : `-${short}, `}--${flagOf(name)}${value === undefined ? '' : ` ${value}`}`;
  const more = `${otherwise === undefined ? '' : `; default ${otherwise}`}${many ? ' (repeatable)' : ''}`;
  return lineOf(flag, `${means}${more}`);
};

/** Returns the options of a command as its row describes them. */
function optionsOf(command: Command): [string, Option][] {
  if (command.own) return Object.entries(command.own);
  const own = new Map((command.takes ?? []).flatMap((takes) => (typeof takes === 'string' ? [] : [[takes[0], takes]])));
  return [...takenBy(command), ...commonOptions].map((name) => {
    const [, means, value] = own.get(name) ?? [];
    return [name, { ...options[name], ...(means !== undefined && { means }), ...(value !== undefined && { value }) }];
  });
}

export function helpOf(command: Command): string {
  const lines = optionsOf(command).map(([name, option]) => listed(name, option));
  const heads = [`auricle ${usageOf(command)}`, command.does];
  return [...heads, lines.join('\n'), ...(command.more ? [command.more] : [])].join('\n\n');
}

const does = (rows: readonly Command[]): string =>
  rows.map(({ name, operands = '', does: what }) => lineOf(`${name} ${operands}`.trim(), what)).join('\n');

export const helpOfGroup = (first: string): string =>
  `${does(groupOf(first))}\n\n\`auricle help ${first} COMMAND\` lists the options of one.`;

/** Summary of each command group, by first word. */
const groups: Readonly<Record<string, string>> = {
  audit: 'the transparency log: shows, searches, exports, verifies, erases',
  deploy: 'makes the keys and settings of an environment, and checks one',
  model: 'revisions of models: builds, signs, promotes through the gates, rolls back',
  name: 'names under which requests find models, such as whisper-1',
  pool: 'drains a pool; pools lists them',
  route: 'explains the choice of agents for a request',
  uploads: 'uploaded files: lists, shows, waits, cancels',
  project: 'turns text into speech, a document at a time',
};

export function helpOfAll(): string {
  const names = [...new Set(commands.map(({ name }) => name.split(' ')[0] ?? ''))];
  const line = (name: string) => lineOf(name, groups[name] ?? commands.find((one) => one.name === name)?.does ?? '');
  const shared = [...edgeOptions, ...commonOptions, 'version'] as const;
  return [
    'auricle COMMAND [OPTION…]',
    names.map(line).join('\n'),
    '`auricle help COMMAND` explains one.',
    shared.map((name) => listed(name, options[name])).join('\n'),
  ].join('\n\n');
}
