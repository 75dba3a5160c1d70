import { ok } from '../../../../shared/result.ts';
import { UTTERANCE_S } from '../../agent/settings/limits.ts';
import { type BuildResult, problem } from '../problem.ts';

/** Converts to microseconds, so that 0.16 s is an integer. */
const micros = (text: string, unit: number): number => Math.round(Number(text) * unit);

/**
 * Checks that chunks and paddings are whole rows of scores: a cut within a row is computed from half a row,
 * and its words are silently wrong.
 */
export function checkTiming(settings: Readonly<Record<string, string>>): BuildResult<undefined> {
  const { ms_per_timestep: step } = settings;
  const sizes = ['chunk_size', 'left_padding_size', 'right_padding_size'] as const;
  const given = sizes.filter((name) => Number(settings[name] ?? 0) > 0);
  if (step === undefined) {
    return given.length === 0
      ? ok(undefined)
      : problem('timing', `${given[0]} needs ms_per_timestep, which neither the archive nor an option says`);
  }
  const row = micros(step, 1000);
  if (row <= 0) return problem('timing', `ms_per_timestep=${step} is no length`);
  for (const name of given) {
    const size = micros(settings[name] as string, 1_000_000);
    if (size % row !== 0)
      return problem('timing', `${name}=${settings[name]} s is no multiple of ms_per_timestep=${step} ms`);
  }
  const window = (['chunk_size', 'left_padding_size', 'right_padding_size'] as const)
    .map((name) => Number(settings[name] ?? 0))
    .reduce((sum, size) => sum + size, 0);
  return settings.streaming === 'true' && window > UTTERANCE_S
    ? problem('timing', `a chunk and its paddings are longer than an utterance may be (${UTTERANCE_S} s)`)
    : ok(undefined);
}
