// One row of the table of commands.
import type { Answer } from './answer.ts';
import { type Arguments, edgeOptions, type Option, type OptionName } from './options.ts';

/** An option as the table has it, or with another meaning for this command. */
export type Takes = OptionName | readonly [OptionName, string] | readonly [OptionName, string, string];

export interface Command {
  /** One word, or two. */
  readonly name: string;
  /** As in the help: `[X]` may be missing, `X…` may come again. */
  readonly operands?: string;
  readonly does: string;
  readonly takes?: readonly Takes[];
  /** Options that only this command has, and that may be given more than once. */
  readonly own?: Readonly<Record<string, Option>>;
  /** Closing lines of its help. */
  readonly more?: string;
  /** It runs on this machine alone: no edge, no token. */
  readonly local?: true | ((given: Arguments) => boolean);
  /** Absent for commands that build models: `models/build.ts` reads their words. */
  readonly run?: (given: Arguments, headers: Record<string, string>, token: string) => Promise<Answer>;
}

/** Options of the help of a command, without those of every command. */
export const takenBy = ({ takes = [], local }: Command): OptionName[] => [
  ...takes.map((one) => (typeof one === 'string' ? one : one[0])),
  ...(local === true ? [] : edgeOptions),
];

export const usageOf = ({ name, operands = '' }: Command): string => `${`${name} ${operands}`.trim()} [OPTION…]`;

/** Fewest and most operands. */
export function operandCounts({ operands = '' }: Command): readonly [number, number] {
  const words = operands.split(' ').filter(Boolean);
  const fewest = words.filter((word) => !word.startsWith('[')).length;
  return [fewest, operands.includes('…') ? Number.POSITIVE_INFINITY : words.length];
}
