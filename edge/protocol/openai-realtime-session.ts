import { z } from 'zod';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { listedLanguages, tagOfLanguage } from '../../shared/speech/language.ts';
import {
  type Granularity,
  repeatedFields,
  transcriptionFields,
  writtenLanguage,
} from '../../shared/speech/openai-form.ts';
import { biasOf, termTexts } from '../../shared/speech/terms.ts';
import { AUDIO_RATE_MAX_HZ, AUDIO_RATE_MIN_HZ } from '../../shared/speech/wav.ts';
import type { StreamFormat } from '../../shared/stream/format.ts';
import type { StreamOptions } from '../../shared/stream/link.ts';
import { refuseField } from '../http/refuse-field.ts';

/** Additional members that a client may request for each transcript. */
export const LOGPROBS = 'item.input_audio_transcription.logprobs';

const rateRule = `must be an integer from ${AUDIO_RATE_MIN_HZ} to ${AUDIO_RATE_MAX_HZ}`;
const rate = z.int(rateRule).min(AUDIO_RATE_MIN_HZ, rateRule).max(AUDIO_RATE_MAX_HZ, rateRule);

/** Sample rates. The hosted service takes 24 kHz only; here the agent resamples. */
const format = z.discriminatedUnion(
  'type',
  [
    z.object({ type: z.literal('audio/pcm'), rate: rate.default(24_000) }),
    z.object({ type: z.literal('audio/pcmu') }),
    z.object({ type: z.literal('audio/pcma') }),
  ],
  'must be audio/pcm, audio/pcmu or audio/pcma',
);
type Format = z.infer<typeof format>;

const transcription = z.object({
  model: transcriptionFields.shape.model.nullish(),
  language: writtenLanguage.nullish(),
  languages: z.array(z.string().max(35)).max(64, 'must be at most 64 tags').nullish(),
  prompt: transcriptionFields.shape.prompt.nullable(),
  keywords: termTexts.nullish(),
  timestamp_granularities: repeatedFields.shape.timestamp_granularities.nullable(),
});

const milliseconds = (least: number, most: number) => {
  const rule = `must be an integer from ${least} to ${most}`;
  return z.int(rule).min(least, rule).max(most, rule);
};
const threshold = z.number('must be a number').min(0, 'must be at least 0').max(1, 'must be at most 1');

/** Turn detection with the hosted service's defaults. Only the silence has an effect: the agent detects voice itself. */
const turnDetection = z.discriminatedUnion(
  'type',
  [
    z.object({
      type: z.literal('server_vad'),
      threshold: threshold.nullish().transform((value) => value ?? 0.5),
      prefix_padding_ms: milliseconds(0, 10_000)
        .nullish()
        .transform((value) => value ?? 300),
      silence_duration_ms: milliseconds(10, 10_000)
        .nullish()
        .transform((value) => value ?? 500),
    }),
    z.object({
      type: z.literal('semantic_vad'),
      eagerness: z
        .enum(['low', 'medium', 'high', 'auto'], 'must be low, medium, high or auto')
        .nullish()
        .transform((value) => value ?? 'auto'),
    }),
  ],
  'must be server_vad or semantic_vad',
);
type TurnDetection = z.infer<typeof turnDetection>;

/** Longest pause by eagerness, in place of a model of turns. */
const eagernessMs = { low: 1_500, medium: 800, high: 400, auto: 800 } as const;

const noiseReduction = z.looseObject({ type: z.enum(['near_field', 'far_field'], 'must be near_field or far_field') });
const include = z.array(z.literal(LOGPROBS, `must be "${LOGPROBS}"`));

/** Members of a session that are neither null nor absent. */
export const sessionBody = z.object({
  type: z.literal('transcription', 'must be "transcription": this address only transcribes').optional(),
  audio: z
    .object({
      input: z
        .object({
          format: format.optional(),
          transcription: transcription.optional(),
          noise_reduction: noiseReduction.nullish(),
          turn_detection: turnDetection.nullish(),
        })
        .optional(),
    })
    .optional(),
  include: include.nullish(),
});

/** Configuration of a session. Plain data, since client secrets carry it. */
export interface SessionConfig {
  readonly format: Format;
  readonly model: string | undefined;
  /** BCP 47 tag, `auto`, or absent. */
  readonly language: string | undefined;
  /** Tags of a list: the language is one of them. */
  readonly languages?: readonly string[] | undefined;
  readonly prompt: string | undefined;
  /** Words to raise besides those of the prompt; those of secrets of before are absent. */
  readonly keywords?: readonly string[];
  /** Times that each transcript has besides its text; those of secrets of before are absent. */
  readonly granularities?: readonly Granularity[];
  readonly noiseReduction: z.infer<typeof noiseReduction> | null;
  readonly turnDetection: TurnDetection | null;
  readonly include: readonly string[];
}

export const defaultConfig: SessionConfig = {
  format: { type: 'audio/pcm', rate: 24_000 },
  model: undefined,
  language: undefined,
  prompt: undefined,
  noiseReduction: null,
  turnDetection: { type: 'server_vad', threshold: 0.5, prefix_padding_ms: 300, silence_duration_ms: 500 },
  include: [],
};

/**
 * Returns the configuration after an update, which replaces the members it names. Ignores unknown members, since tools
 * send their own. Refuses with `field_invalid` or `field_missing`.
 */
export function updateConfig(config: SessionConfig, session: unknown): Result<SessionConfig> {
  if (typeof session !== 'object' || session === null || Array.isArray(session)) {
    return no(refuse('field_missing', { field: 'session' }));
  }
  const parsed = sessionBody.safeParse(session);
  if (!parsed.success) return invalid(parsed.error, session);
  const { audio: { input } = {}, include: members } = parsed.data;
  const given = <T>(value: T | undefined, before: T) => (value === undefined ? before : value);
  return ok({
    format: input?.format ?? config.format,
    ...mergeTranscription(config, input?.transcription),
    noiseReduction: given(input?.noise_reduction, config.noiseReduction),
    turnDetection: given(input?.turn_detection, config.turnDetection),
    include: members ?? (members === null ? [] : config.include),
  });
}

function invalid(error: z.ZodError, session: object): Result<never> {
  const { reason, params } = refuseField(error, session);
  return no(refuse(reason, { ...params, field: `session.${params?.field}`.slice(0, 100) }));
}

function mergeTranscription(
  { model, language, languages, prompt, keywords = [], granularities = [] }: SessionConfig,
  requested: z.infer<typeof transcription> | undefined,
): Pick<SessionConfig, 'model' | 'language' | 'languages' | 'prompt' | 'keywords' | 'granularities'> {
  if (!requested) return { model, language, languages, prompt, keywords, granularities };
  // A list of one language is a choice; one of a longer list is detected.
  const tag = requested.language && tagOfLanguage(requested.language);
  const listed = requested.language === undefined ? requested.languages : listedLanguages(requested.language ?? '');
  const [only, ...others] = listed ?? [];
  const isList = others.length > 0;
  const chosen = isList ? null : tag === undefined ? only : tag;
  const kept = <T>(value: T | null | undefined, before: T | undefined) =>
    value === undefined ? before : (value ?? undefined);
  return {
    model: kept(requested.model, model),
    language: kept(chosen, language),
    languages: isList ? [only as string, ...others] : chosen === undefined ? languages : undefined,
    prompt: kept(requested.prompt, prompt),
    keywords: kept(requested.keywords, keywords) ?? [],
    granularities: kept(requested.timestamp_granularities, granularities) ?? [],
  };
}

/** Returns the audio format of a session. */
export function formatOf({ format: { type }, format: all }: SessionConfig): StreamFormat {
  if (type === 'audio/pcmu') return { encoding: 'mulaw', rate: 8_000, channels: 1 };
  if (type === 'audio/pcma') return { encoding: 'alaw', rate: 8_000, channels: 1 };
  return { encoding: 'linear16', rate: 'rate' in all ? all.rate : 24_000, channels: 1 };
}

const endpointingOf = (turns: TurnDetection) =>
  turns.type === 'server_vad' ? turns.silence_duration_ms : eagernessMs[turns.eagerness];

export function optionsOf({ turnDetection: turns, prompt, keywords = [] }: SessionConfig): StreamOptions {
  const texts = keywords.filter((text) => text !== '').map((text) => ({ text }));
  const bias = biasOf(prompt, texts);
  return {
    interim: true,
    endpointingMs: turns === null ? false : endpointingOf(turns),
    ...(bias && { terms: [...bias.terms] }),
  };
}

export interface SessionFacts {
  readonly id: string;
  /** Epoch seconds. */
  readonly expiresAt: number;
}

const shownTranscription = ({
  model,
  language,
  languages,
  prompt,
  keywords = [],
  granularities = [],
}: SessionConfig) => ({
  model: model ?? null,
  ...(language !== undefined && { language }),
  ...(languages && { languages }),
  ...(prompt !== undefined && { prompt }),
  ...(keywords.length > 0 && { keywords }),
  ...(granularities.length > 0 && { timestamp_granularities: granularities }),
});

/** Renders the session in OpenAI's current shape. */
export function showSession(config: SessionConfig, { id, expiresAt }: SessionFacts) {
  return {
    type: 'transcription',
    object: 'realtime.transcription_session',
    id,
    expires_at: expiresAt,
    audio: {
      input: {
        format: config.format,
        transcription: shownTranscription(config),
        noise_reduction: config.noiseReduction,
        turn_detection: config.turnDetection,
      },
    },
    include: config.include.length > 0 ? config.include : null,
  };
}

/** Returns the first changed member that a running session cannot change. */
export function changed(before: SessionConfig, after: SessionConfig): string | undefined {
  if (before.model !== after.model) return 'audio.input.transcription.model';
  const languagesOf = ({ language, languages }: SessionConfig) => `${language} ${languages}`;
  if (languagesOf(before) !== languagesOf(after)) return 'audio.input.transcription.language';
  const [one, other] = [formatOf(before), formatOf(after)];
  return one.encoding === other.encoding && one.rate === other.rate ? undefined : 'audio.input.format';
}
