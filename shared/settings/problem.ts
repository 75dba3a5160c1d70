import type { z } from 'zod';

/** One setting that keeps a deployable from serving. Neither member quotes a value. */
export interface Problem {
  readonly setting: string;
  readonly problem: string;
}

/** A check of all settings for what one of them must hold in production. It sees only those that could be read. */
export type Rule<S> = readonly [setting: string, check: (settings: Partial<S>) => readonly string[]];

export interface Parsed<S> {
  /** Settings that could be read. */
  readonly data: Partial<S>;
  readonly problems: readonly Problem[];
}

/** Reads every setting by itself, so that one that is wrong hides no other. */
export function parseSettings<T extends z.ZodObject>(
  schema: T,
  texts: Readonly<Record<string, unknown>>,
): Parsed<z.output<T>> {
  const whole = schema.safeParse(texts);
  if (whole.success) return { data: whole.data as Partial<z.output<T>>, problems: [] };
  const problems = whole.error.issues.map(({ path: [setting = '', ...inside], message }) => ({
    setting: String(setting),
    problem: texts[String(setting)] === undefined ? 'is missing' : describe(inside, message),
  }));
  const wrong = new Set(problems.map(({ setting }) => setting));
  const readable = Object.fromEntries(Object.entries(texts).filter(([name]) => !wrong.has(name)));
  const rest = schema.partial().safeParse(readable);
  return { data: (rest.data ?? {}) as Partial<z.output<T>>, problems };
}

/** Applies `rules` to what could be read. A setting that is wrong already is not reported twice. */
export function applyRules<S>(rules: readonly Rule<S>[], { data, problems }: Parsed<S>): readonly Problem[] {
  const wrong = new Set(problems.map(({ setting }) => setting));
  const broken = rules.flatMap(([setting, check]) =>
    wrong.has(setting) ? [] : check(data).map((problem) => ({ setting, problem })),
  );
  return [...problems, ...broken];
}

export const describeProblems = (problems: readonly Problem[]): string =>
  problems.map(({ setting, problem }) => `${setting} ${problem}`).join('; ');

/** Names of members that a schema has, and positions; names that a value brings along may be part of a secret. */
const describe = (inside: readonly PropertyKey[], message: string): string =>
  inside.length === 0 ? `is wrong: ${message}` : `is wrong at ${inside.join('.')}: ${message}`;
