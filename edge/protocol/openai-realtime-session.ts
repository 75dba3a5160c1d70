import { z } from 'zod';
import { limits } from '../../shared/limits.ts';
import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { transcriptionFields } from '../../shared/speech/openai-form.ts';
import type { StreamFormat } from '../../shared/stream/format.ts';
import type { StreamOptions } from '../../shared/stream/link.ts';
import { refuseField } from '../refuse-field.ts';

/** What a client may ask to be told with each transcript. */
export const LOGPROBS = 'item.input_audio_transcription.logprobs';

const { audioRateMin, audioRateMax } = limits;
const rateRule = `must be an integer from ${audioRateMin.value} to ${audioRateMax.value}`;
const rate = z.int(rateRule).min(audioRateMin.value, rateRule).max(audioRateMax.value, rateRule);

/** The hosted service takes 24 kHz only; other rates cost nothing here, the agent resamples. */
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
  language: transcriptionFields.shape.language.nullable(),
  languages: z.array(z.string()).max(64, 'must be at most 64 tags').nullish(),
  prompt: transcriptionFields.shape.prompt.nullable(),
});

const milliseconds = (least: number, most: number) => {
  const rule = `must be an integer from ${least} to ${most}`;
  return z.int(rule).min(least, rule).max(most, rule);
};
const threshold = z.number('must be a number').min(0, 'must be at least 0').max(1, 'must be at most 1');

/** Defaults are the hosted service's. Only the silence has an effect: voice is detected by the pool's own measure. */
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

/** No model of turns here: eagerness is how long a pause may be. The cautious one still ends in a second and a half. */
const eagernessMs = { low: 1_500, medium: 800, high: 400, auto: 800 } as const;

const noiseReduction = z.looseObject({ type: z.enum(['near_field', 'far_field'], 'must be near_field or far_field') });
const include = z.array(z.literal(LOGPROBS, `must be "${LOGPROBS}"`));

/** The part of a session that is not `null` and not changed by leaving it out. */
const gaSession = z.object({
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

/** `none` is what NVIDIA's client calls the samples of a file. */
const betaFormats = {
  pcm16: 'audio/pcm',
  g711_ulaw: 'audio/pcmu',
  g711_alaw: 'audio/pcma',
  none: 'audio/pcm',
} as const;
const formatNames = Object.keys(betaFormats) as (keyof typeof betaFormats)[];

/** The retired shape; `input_audio_params` is what NVIDIA's client of that shape adds. */
const betaSession = z.object({
  input_audio_format: z.enum(formatNames, 'must be pcm16, g711_ulaw or g711_alaw').optional(),
  input_audio_transcription: transcription.optional(),
  input_audio_noise_reduction: noiseReduction.nullish(),
  input_audio_params: z
    .object({ sample_rate_hz: rate.nullish(), num_channels: z.literal(1, 'must be 1').nullish() })
    .nullish(),
  turn_detection: turnDetection.nullish(),
  include: include.nullish(),
});

/** A session as clients send it: members of both shapes. */
export const sessionBody = gaSession.extend(betaSession.shape);

/** What holds for a session. Plain data: it also travels inside a client secret. */
export interface SessionConfig {
  readonly format: Format;
  readonly model: string | undefined;
  /** BCP 47 tag, `auto`, or absent. */
  readonly language: string | undefined;
  readonly prompt: string | undefined;
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
 * The configuration after an update: what it names is replaced, the rest stays. Both shapes are understood whichever
 * the client speaks; members nobody here knows are ignored, as tools send their own. Refuses with `field_invalid` or `field_missing`.
 */
export function updateConfig(config: SessionConfig, session: unknown): Result<SessionConfig> {
  if (typeof session !== 'object' || session === null || Array.isArray(session)) {
    return no(refuse('field_missing', { field: 'session' }));
  }
  const ga = gaSession.safeParse(session);
  if (!ga.success) return invalid(ga.error, session);
  const beta = betaSession.safeParse(session);
  if (!beta.success) return invalid(beta.error, session);
  const { input } = ga.data.audio ?? {};
  const flat = beta.data;
  const given = <T>(...values: (T | undefined)[]) => values.find((value) => value !== undefined);
  const wishes = input?.transcription ?? flat.input_audio_transcription;
  return ok({
    format: given(input?.format, betaFormat(config.format, flat)) ?? config.format,
    ...mergeTranscription(config, wishes),
    noiseReduction: given(input?.noise_reduction, flat.input_audio_noise_reduction, config.noiseReduction) ?? null,
    turnDetection: given(input?.turn_detection, flat.turn_detection, config.turnDetection) ?? null,
    include: ga.data.include ?? (ga.data.include === null ? [] : config.include),
  });
}

function invalid(error: z.ZodError, session: object): Result<never> {
  const { reason, params } = refuseField(error, session);
  return no(refuse(reason, { ...params, field: `session.${params?.field}`.slice(0, 100) }));
}

function betaFormat(now: Format, flat: z.infer<typeof betaSession>): Format | undefined {
  const type = flat.input_audio_format ? betaFormats[flat.input_audio_format] : now.type;
  const hertz = flat.input_audio_params?.sample_rate_hz;
  if (type !== 'audio/pcm') return flat.input_audio_format && { type };
  if (!flat.input_audio_format && !hertz) return undefined;
  return { type, rate: hertz ?? (now.type === 'audio/pcm' ? now.rate : 24_000) };
}

function mergeTranscription(
  { model, language, prompt }: SessionConfig,
  wishes: z.infer<typeof transcription> | undefined,
): Pick<SessionConfig, 'model' | 'language' | 'prompt'> {
  if (!wishes) return { model, language, prompt };
  // One language of a list is a choice; several leave it to the model, which is told nothing it could use.
  const [only, ...others] = wishes.languages ?? [];
  const chosen = wishes.language !== undefined ? wishes.language : others.length === 0 ? only : undefined;
  const kept = <T>(wish: T | null | undefined, before: T | undefined) =>
    wish === undefined ? before : (wish ?? undefined);
  return {
    model: kept(wishes.model, model),
    language: kept(chosen, language),
    prompt: kept(wishes.prompt, prompt),
  };
}

/** How the sound of a session is written, for the pool. */
export function formatOf({ format: { type }, format: all }: SessionConfig): StreamFormat {
  if (type === 'audio/pcmu') return { encoding: 'mulaw', rate: 8_000, channels: 1 };
  if (type === 'audio/pcma') return { encoding: 'alaw', rate: 8_000, channels: 1 };
  return { encoding: 'linear16', rate: 'rate' in all ? all.rate : 24_000, channels: 1 };
}

export function optionsOf({ turnDetection: turns }: SessionConfig): StreamOptions {
  if (turns === null) return { interim: true, endpointingMs: false };
  const endpointingMs = turns.type === 'server_vad' ? turns.silence_duration_ms : eagernessMs[turns.eagerness];
  return { interim: true, endpointingMs };
}

export interface SessionFacts {
  readonly id: string;
  /** Seconds since 1970. */
  readonly expiresAt: number;
}

const shownTranscription = ({ model, language, prompt }: SessionConfig) => ({
  model: model ?? null,
  ...(language !== undefined && { language }),
  ...(prompt !== undefined && { prompt }),
});

/** The session as OpenAI's clients read it. */
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

/** The same in the retired shape. */
export function showBetaSession(config: SessionConfig, { id, expiresAt }: SessionFacts) {
  const [name] = Object.entries(betaFormats).find(([, type]) => type === config.format.type) ?? ['pcm16'];
  return {
    object: 'realtime.transcription_session',
    id,
    expires_at: expiresAt,
    modalities: ['text'],
    input_audio_format: name,
    ...('rate' in config.format &&
      config.format.rate !== 24_000 && { input_audio_params: { sample_rate_hz: config.format.rate, num_channels: 1 } }),
    input_audio_transcription: shownTranscription(config),
    input_audio_noise_reduction: config.noiseReduction,
    turn_detection: config.turnDetection,
    ...(config.include.length > 0 && { include: config.include }),
  };
}

/** What cannot change under a recogniser at work; the name of the first such member that did. */
export function changed(before: SessionConfig, after: SessionConfig): string | undefined {
  if (before.model !== after.model) return 'audio.input.transcription.model';
  if (before.language !== after.language) return 'audio.input.transcription.language';
  const [one, other] = [formatOf(before), formatOf(after)];
  return one.encoding === other.encoding && one.rate === other.rate ? undefined : 'audio.input.format';
}

/** NVIDIA's client of the retired shape shows itself by members that only it sends. */
export const isNvidia = (session: unknown): boolean =>
  typeof session === 'object' &&
  session !== null &&
  ('input_audio_params' in session || 'recognition_config' in session);
