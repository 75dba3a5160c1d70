import { fp32Tensor, int32Tensor, readFp32, type Tensor } from '../../../../shared/kserve/tensor.ts';
import { NO_LANGUAGE, servesLanguage } from '../../../../shared/pool/language.ts';
import { type Refusal, refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { MODEL_RATE } from '../audio/mono.ts';

/** Speech from which a language is detected: the detector is measured on 2 s. */
export const OPENING_S = 2;
export const OPENING_SAMPLES = OPENING_S * MODEL_RATE;
/**
 * Least probability of a language by the seconds of speech behind it. Of 180 openings of 2, 1.5 and 1 s each, by voices
 * unseen in training, `language-id` puts 0, 0 and 1 in a wrong language above 0.7; of 180 of 0.7 and 0.5 s 0 and 3 above
 * 0.9. Of shorter ones it is sure and wrong too often: no probability suffices.
 */
const CONFIDENCE_MIN: readonly { readonly seconds: number; readonly confidence: number }[] = [
  { seconds: 1, confidence: 0.7 },
  { seconds: 0.5, confidence: 0.9 },
];

/**
 * Least probability of all listed languages together: with less the speech is more likely in another one.
 * For openings of 2 s of ten clips (test/clips, test/clips/languages) `language-id` gives the spoken language
 * 0.97 or more, and 0.6 or more with white noise 5 dB below the speech; the other three share the rest.
 */
const LISTED_MIN = 0.5;

/** Tensors of a detector. */
export const detectorTensors = { inputs: ['AUDIO', 'AUDIO_LENGTH'], outputs: ['LOG_PROBS'] } as const;

/** A model at the engine that tells languages apart. */
export interface Detector {
  /** Its name at the engine. */
  readonly model: string;
  /** BCP 47, in the order of its scores. */
  readonly languages: readonly string[];
}

/** A language and its probability, 0 to 1. */
export interface DetectedLanguage {
  readonly language: string;
  readonly confidence: number;
}

export const detectorInputs = (samples: Float32Array): Tensor[] => [
  fp32Tensor('AUDIO', samples, [1, samples.length]),
  int32Tensor('AUDIO_LENGTH', Int32Array.of(samples.length), [1, 1]),
];

/** Returns the languages of an answer of the detector, the likeliest first. */
export function readLanguages(
  outputs: ReadonlyMap<string, Tensor>,
  { languages }: Detector,
): Result<readonly DetectedLanguage[]> {
  const wrong = (detail: string) => no(refuse('engine_failed', undefined, `language detector: ${detail}`));
  const table = outputs.get('LOG_PROBS');
  if (!table) return wrong('no LOG_PROBS');
  const scores = readFp32(table);
  if (!scores.ok) return wrong(scores.refusal.reason);
  const { value } = scores;
  if (value.length !== languages.length || !value.every(Number.isFinite)) return wrong(`${value.length} scores`);
  const most = Math.max(...value);
  const shares = [...value].map((score) => Math.exp(score - most));
  const total = shares.reduce((sum, share) => sum + share, 0);
  const found = languages.map((language, at) => ({ language, confidence: (shares[at] ?? 0) / total }));
  return ok(found.sort((one, other) => other.confidence - one.confidence));
}

/** Returns the members of `final` about a detected language; sound without speech has none. */
export const languageMembers = (
  detected: DetectedLanguage | undefined,
): { readonly language: string; readonly languageConfidence?: number } =>
  detected ? { language: detected.language, languageConfidence: detected.confidence } : { language: NO_LANGUAGE };

const rounded = (confidence: number): number => Math.round(confidence * 1_000) / 1_000;

/**
 * Returns the languages of a list as if there were no others; all languages where the speech is more likely in
 * another one. A list decides between languages that sound alike, and must not turn Mandarin into English.
 */
export function amongLanguages(
  found: readonly DetectedLanguage[],
  list: readonly string[] | undefined,
): readonly DetectedLanguage[] {
  const listed = found.filter(({ language }) => !list || servesLanguage(list, language));
  const total = listed.reduce((sum, { confidence }) => sum + confidence, 0);
  if (total < LISTED_MIN) return found;
  return listed.map(({ language, confidence }) => ({ language, confidence: confidence / total }));
}

/** Returns the certain one of the languages of `samples` of speech, or the refusal that names the two likeliest. */
export function decideLanguage(
  [first, second]: readonly DetectedLanguage[],
  samples: number,
): Result<DetectedLanguage> {
  if (!first) return no(refuse('engine_failed', undefined, 'language detector: no languages'));
  const detected = { language: first.language, confidence: rounded(first.confidence) };
  const least = CONFIDENCE_MIN.find(({ seconds }) => samples >= seconds * MODEL_RATE);
  if (least && first.confidence >= least.confidence) return ok(detected);
  return no(
    refuse('language_uncertain', {
      ...{ first: detected.language, firstConfidence: detected.confidence },
      ...{ second: second?.language ?? 'none', secondConfidence: rounded(second?.confidence ?? 0) },
    }),
  );
}

/**
 * Returns the refusal with which the edge moves a request to a model of the language, or refuses a language that is not
 * in the list of the request; `undefined` for an own one.
 */
export const misdirection = (
  { language, confidence }: DetectedLanguage,
  served: readonly string[],
  list: readonly string[] = served,
): Refusal | undefined =>
  servesLanguage(served, language) && servesLanguage(list, language)
    ? undefined
    : refuse('misdirected', { language, confidence }, `the speech is in ${language}`);
