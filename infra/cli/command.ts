// A row of the table of commands.
import type { Answer } from './answer.ts';
import { type Arguments, edgeOptions, type Option, type OptionName } from './options.ts';

/** An option of the shared table, optionally with a description or default for this command. */
export type Takes = OptionName | readonly [OptionName, string] | readonly [OptionName, string, string];

export interface Command {
  /** One or two words. */
  readonly name: string;
  /** Help syntax: `[X]` is optional, `X…` repeats. */
  readonly operands?: string;
  readonly does: string;
  readonly takes?: readonly Takes[];
  /** Repeatable options of this command alone. */
  readonly own?: Readonly<Record<string, Option>>;
  /** Closing lines of the command's help. */
  readonly more?: string;
  /** Runs on this machine alone, without edge or token. */
  readonly local?: true | ((given: Arguments) => boolean);
  /** Absent for model-building commands: `models/build.ts` parses their arguments. */
  readonly run?: (given: Arguments, headers: Record<string, string>, token: string) => Promise<Answer>;
}

/** Options of the help of a command, without those of every command. */
export const takenBy = ({ takes = [], local }: Command): OptionName[] => [
  ...takes.map((one) => (typeof one === 'string' ? one : one[0])),
  ...(local === true ? [] : edgeOptions),
];

export const usageOf = ({ name, operands = '' }: Command): string => `${`${name} ${operands}`.trim()} [OPTION…]`;

/** Returns the minimum and maximum number of operands. */
export function operandCounts({ operands = '' }: Command): readonly [number, number] {
  const words = operands.split(' ').filter(Boolean);
  const fewest = words.filter((word) => !word.startsWith('[')).length;
  return [fewest, operands.includes('…') ? Number.POSITIVE_INFINITY : words.length];
}
