import { ok } from '../../../../shared/result.ts';
import { isUnspaced } from '../../../../shared/speech/words.ts';
import { type BuildResult, problem } from '../problem.ts';
import { at, type Yaml } from './yaml.ts';

/**
 * Lowest sample rate of a model: lower rates have lost the consonants, and resampling does not restore them
 * (M6).
 */
const MODEL_SAMPLE_RATE_HZ = 16_000;

export interface NemoFacts {
  /** Last part of its class's dotted name. */
  readonly model: string;
  readonly settings: Readonly<Record<string, string>>;
  /** Tokens in the order of the network's rows, blank last, for a network that spells letters. */
  readonly vocabulary: readonly string[] | undefined;
  readonly advice: readonly string[];
}

const numberAt = (config: Yaml, ...keys: string[]): number | undefined => {
  const value = at(config, ...keys);
  return typeof value === 'number' ? value : undefined;
};

/** Reads the facts of a model_config.yaml that a build needs. */
export function factsOf(config: Yaml, name: string): BuildResult<NemoFacts> {
  const target = at(config, 'target') ?? at(config, '_target_');
  if (typeof target !== 'string' || !/^nemo\.collections(\.\w+)+$/.test(target)) {
    return problem('unreadable', `${name} does not say which model it is (target)`);
  }
  const model = target.split('.').at(-1) as string;
  const rate = numberAt(config, 'preprocessor', 'sample_rate') ?? numberAt(config, 'sample_rate');
  if (rate !== undefined && rate < MODEL_SAMPLE_RATE_HZ) {
    return problem(
      'artifact',
      `${name}: trained on ${rate} Hz, under the ${MODEL_SAMPLE_RATE_HZ} Hz that speech needs (M6)`,
    );
  }
  const stride = numberAt(config, 'preprocessor', 'window_stride');
  const factor = numberAt(config, 'encoder', 'subsampling_factor');
  const step = stride !== undefined && factor !== undefined ? Math.round(stride * factor * 1000) : undefined;
  const labels = at(config, 'labels') ?? at(config, 'decoder', 'vocabulary');
  const letters = lettersOf(labels);
  const settings: Record<string, string> = {};
  if (rate !== undefined) settings.sample_rate = String(rate);
  if (step !== undefined) settings.ms_per_timestep = String(step);
  if (letters) {
    settings.blank = String(letters.length);
    if (letters.includes('<space>')) settings.word_boundary = String(letters.indexOf('<space>'));
  }
  const pieces = Array.isArray(labels) && !letters && at(config, 'tokenizer') !== undefined;
  const advice = pieces
    ? [
        `${name}: words are made of pieces, which the agent's decoder does not join: it is deployed for callers of tensors`,
      ]
    : [];
  return ok({ model, settings, vocabulary: letters && [...letters, '<blank>'], advice });
}

/**
 * Returns the letters, when every label is one and words can be told apart: by a space, which gets the agent's name, or
 * by a script without spaces.
 */
function lettersOf(labels: Yaml | undefined): string[] | undefined {
  if (!Array.isArray(labels) || labels.length === 0) return undefined;
  if (!labels.some((label) => label === ' ' || (typeof label === 'string' && isUnspaced(label)))) return undefined;
  const letters: string[] = [];
  for (const label of labels) {
    if (typeof label !== 'string' || [...label].length !== 1) return undefined;
    letters.push(label === ' ' ? '<space>' : label);
  }
  return letters;
}
