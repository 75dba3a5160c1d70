import { z } from 'zod';
import { refuse } from '../refusal.ts';
import { requestedModel } from '../registry/names.ts';
import { no, ok, type Result } from '../result.ts';
import { languageList, listedLanguages, tagOfLanguage } from './language.ts';

/** Forms whose parse is cached: callers differ in model, language and format, and in little else. */
const CACHED_FORMS_MAX = 256;
/** Longest form worth caching; one with a prompt belongs to one caller. */
const CACHED_FORM_CHARACTERS = 256;

/** Values of `response_format`. `diarized_json` is refused: agents do not separate speakers. */
export const responseFormats = ['json', 'text', 'srt', 'verbose_json', 'vtt'] as const;
export type ResponseFormat = (typeof responseFormats)[number];

export const granularities = ['word', 'segment'] as const;
export type Granularity = (typeof granularities)[number];

/** Value of `include` for the log probabilities of words. */
const LOGPROBS = 'logprobs';

/** A language as callers write it. */
export const writtenLanguage = z
  .string()
  .regex(languageList, 'must be a language such as "en" or "english", a list of them, or "auto"');

/**
 * Text parts of `POST /v1/audio/transcriptions`, by name. Names and rules are OpenAI's. The caller sees the
 * text of a failed rule.
 */
export const transcriptionFields = z.object({
  model: requestedModel,
  language: writtenLanguage.transform(tagOfLanguage).optional(),
  prompt: z.string().max(8_192, 'must be at most 8192 characters').optional(),
  response_format: z.enum(responseFormats, `must be one of ${responseFormats.join(', ')}`).default('json'),
  temperature: z
    .string()
    .regex(/^(0(\.\d+)?|1(\.0+)?)$/, 'must be a number from 0 to 1')
    .transform(Number)
    .default(0),
  stream: z
    .enum(['true', 'false', 'True', 'False', '1', '0'], 'must be "true" or "false"')
    .transform((value) => value === '1' || value.toLowerCase() === 'true')
    .default(false),
});

/** Fields that repeat. Unsupported values are refused, not ignored. */
export const repeatedFields = z.object({
  timestamp_granularities: z
    .array(z.enum(granularities, 'each must be "word" or "segment"'))
    .transform((values): readonly Granularity[] => [...new Set(values)])
    .optional(),
  include: z.array(z.literal(LOGPROBS, 'each must be "logprobs"')).optional(),
  known_speaker_names: z.array(z.string()).max(0, 'speakers are not told apart').optional(),
  known_speaker_references: z.array(z.string()).max(0, 'speakers are not told apart').optional(),
});

export interface TranscriptionForm {
  readonly model: string;
  /** BCP 47 tag; absent for `auto` and for a list. */
  readonly language: string | undefined;
  /** Tags of a list: the language is one of them. */
  readonly languages?: readonly string[] | undefined;
  readonly prompt: string | undefined;
  readonly responseFormat: ResponseFormat;
  readonly temperature: number;
  readonly stream: boolean;
  /** Adds the log probability of each word; with `json` only. */
  readonly logprobs: boolean;
  /** Has an effect on `verbose_json` only. */
  readonly granularities: readonly Granularity[];
}

/**
 * Reads the text parts of a transcription request; keys are spelled without `[]`. Unknown fields are ignored, as the
 * hosted interface does, because tools built on it send their own.
 * Refuses with `field_missing` or `field_invalid`. Source: OpenAI's API description, 2.3.0, `CreateTranscriptionRequest`.
 */
export function readForm(fields: Readonly<Record<string, readonly string[]>>): Result<TranscriptionForm> {
  const single: Record<string, string> = {};
  for (const name of Object.keys(transcriptionFields.shape)) {
    const values = fields[name];
    if (!values || values.length === 0) continue;
    if (values.length > 1) return invalid(name, 'must appear once');
    // An empty optional field is what a form with an untouched input sends.
    if (values[0] !== '' || name === 'model') single[name] = values[0] as string;
  }
  if (single.model === undefined || single.model === '') return no(refuse('field_missing', { field: 'model' }));
  const one = transcriptionFields.safeParse(single);
  if (!one.success) return firstProblem(one.error);
  const many = repeatedFields.safeParse(fields);
  if (!many.success) return firstProblem(many.error);

  const { language, prompt, response_format: responseFormat, stream } = one.data;
  const granularities = many.data.timestamp_granularities ?? [];
  if (stream && responseFormat !== 'json' && responseFormat !== 'text') {
    return invalid('stream', `is not possible with response_format ${responseFormat}`);
  }
  const logprobs = many.data.include?.includes(LOGPROBS) ?? false;
  if (logprobs && responseFormat !== 'json') {
    return invalid('include', `is not possible with response_format ${responseFormat}`);
  }
  return ok({
    model: one.data.model,
    language: language === 'auto' ? undefined : language,
    languages: listedLanguages(single.language ?? ''),
    prompt,
    responseFormat,
    temperature: one.data.temperature,
    stream,
    logprobs,
    granularities: granularities.length > 0 ? granularities : ['segment'],
  });
}

const known = new Map<string, Result<TranscriptionForm>>();

/** Reads a form with a cache of short ones, at most `CACHED_FORMS_MAX`. */
export function readKnownForm(fields: Readonly<Record<string, readonly string[]>>): Result<TranscriptionForm> {
  const name = JSON.stringify(fields);
  const before = known.get(name);
  if (before) return before;
  const form = readForm(fields);
  if (name.length > CACHED_FORM_CHARACTERS) return form;
  if (known.size >= CACHED_FORMS_MAX) known.clear();
  known.set(name, form);
  return form;
}

function firstProblem(error: z.ZodError): Result<never> {
  const [issue] = error.issues;
  return invalid(String(issue?.path[0] ?? 'form'), issue?.message ?? 'is not understood');
}

const invalid = (field: string, rule: string): Result<never> => no(refuse('field_invalid', { field, rule }));
