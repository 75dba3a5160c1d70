// Reads a command line by the table of commands.
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { argumentProblem } from '../../shared/argument-problem.ts';
import { type Command, operandCounts, takenBy, usageOf } from './command.ts';
import { findCommand } from './commands.ts';
import {
  type Arguments,
  commonOptions,
  edgeOptions,
  flagOf,
  type Option,
  type OptionName,
  type OptionValues,
  options,
} from './options.ts';
import { type Environment, readPlace } from './place.ts';

const configOf = (names: readonly OptionName[]): ParseArgsOptionsConfig =>
  Object.fromEntries(
    names.map((name) => {
      const { value, short }: Option = options[name];
      return [
        flagOf(name),
        { type: value === undefined ? 'boolean' : 'string', ...(short !== undefined && { short }) },
      ];
    }),
  );

const everyOption = configOf(Object.keys(options) as OptionName[]);

/** Returns the words of a command line that are neither options nor their values. */
export const positionalsOf = (words: readonly string[]): string[] =>
  parseArgs({ args: [...words], options: everyOption, allowPositionals: true, strict: false }).positionals;

export function readArguments(
  words: readonly string[],
  environment: Environment = {},
): Arguments | { problem: string } {
  const command = findCommand(positionalsOf(words));
  const config = command ? configOf([...takenBy(command), ...edgeOptions, ...commonOptions]) : everyOption;
  try {
    const { values, positionals } = parseArgs({ args: [...words], options: config, allowPositionals: true });
    const [verb, ...operands] = positionals;
    const given = (name: OptionName) => values[flagOf(name)] as string | boolean | undefined;
    const read = Object.entries<Option>(options).map(([name, { value, default: otherwise }]) => [
      name,
      given(name as OptionName) ?? (value === undefined ? false : otherwise),
    ]);
    const flags = Object.fromEntries(read) as OptionValues;
    const place = readPlace(flags, environment, command?.local === true);
    if ('problem' in place) return place;
    if (command && !flags.help && !isCounted(command, positionals))
      return { problem: `usage: auricle ${usageOf(command)}` };
    const model = flags.model ?? (verb === 'project' ? 'voice-en' : 'reference-en');
    return { ...flags, ...place, verb, operands, model, onlyModel: flags.model };
  } catch (error) {
    return { problem: argumentProblem(error) };
  }
}

function isCounted(command: Command, positionals: readonly string[]): boolean {
  const own = positionals.slice(command.name.split(' ').length);
  const [fewest, most] = operandCounts(command);
  return own.length >= fewest && own.length <= most && own.every((word) => word !== '');
}
