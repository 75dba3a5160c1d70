import { refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { listedLanguages, tagOfLanguage } from '../../shared/speech/language.ts';
import { transcriptionFields } from '../../shared/speech/openai-form.ts';
import { readKeywords, readTerms, type Term } from '../../shared/speech/terms.ts';
import type { WavFormat } from '../../shared/speech/wav.ts';
import { AUDIO_CHANNELS_MAX, AUDIO_RATE_MAX_HZ, AUDIO_RATE_MIN_HZ } from '../../shared/speech/wav.ts';
import { type Encoding, encodings, type StreamFormat } from '../../shared/stream/format.ts';
import type { StreamOptions } from '../../shared/stream/link.ts';
import type { RecordingOptions } from './deepgram-answer.ts';
import { type Warning, warnOf } from './deepgram-warning.ts';

/**
 * Shortest silence that ends an utterance of a Deepgram client: the hosted service's 10 ms would cut words
 * here.
 */
export const ENDPOINTING_MIN_MS = 100;

/** Query members of live streams and recordings on `/v1/listen`. */
export interface ListenQuery {
  /** Undefined for the default. */
  readonly model: string | undefined;
  /** BCP 47 tag; undefined for `multi`, `auto` and an open `detect_language`. */
  readonly language: string | undefined;
  /** Tags of several `detect_language`, or of a list: the language is one of them. */
  readonly languages?: readonly string[] | undefined;
  /** The client requests that the language is detected. */
  readonly detectLanguage: boolean;
  /** `keyterm` and `keywords`. */
  readonly terms: readonly Term[];
  readonly warnings: readonly Warning[];
}

export interface LiveQuery extends ListenQuery {
  /** Undefined when the first bytes of the audio name it. */
  readonly format: StreamFormat | undefined;
  readonly options: StreamOptions;
  /** Send `SpeechStarted`. */
  readonly vadEvents: boolean;
}

export interface RecordingQuery extends ListenQuery, RecordingOptions {
  /** Format of a body of bare samples. */
  readonly samples: WavFormat | undefined;
}

/**
 * Options that change the text of a transcript and are not available. They are refused: a client that requests redaction
 * must not get a transcript that looks redacted.
 */
const unavailable: Readonly<Record<string, string>> = {
  redact: 'is not available: nothing is redacted here',
  replace: 'is not available: words are transcribed as they are said',
  search: 'is not available: look in the transcript',
  detect_entities: 'is not available',
  summarize: 'is not available',
  topics: 'is not available',
  intents: 'is not available',
  sentiment: 'is not available',
  callback: 'is not available: the answer comes on this connection',
};

/** Options that clients send by default and that have no effect, each with the warning in the answer. */
const unmet: Readonly<Record<string, string>> = {
  diarize: 'Speakers are not told apart.',
  diarize_model: 'Speakers are not told apart.',
  diarize_version: 'Speakers are not told apart.',
  profanity_filter: 'Words are transcribed as they are said.',
};

/*
 * Accepted without effect, since the transcript is what it would have been: `punctuate`, `smart_format`, `numerals`,
 * `measurements`, `dictation`, `filler_words`, `no_delay` (form), `version`,
 * `mip_opt_out` (nothing is stored), `callback_method`, and unknown members.
 */

/** Milliseconds of silence that end an utterance, unless the client names another number. */
const ENDPOINTING_MS = 300;

const isOff = (value: string) => value === '' || value.toLowerCase() === 'false';

const invalid = (field: string, rule: string): Result<never> => no(refuse('field_invalid', { field, rule }));

function readShared(query: URLSearchParams): Result<ListenQuery> {
  for (const [field, rule] of Object.entries(unavailable)) {
    if (query.getAll(field).some((value) => !isOff(value))) return invalid(field, rule);
  }
  const model = query.get('model') ?? undefined;
  const named = transcriptionFields.shape.model.optional().safeParse(model);
  if (!named.success) return invalid('model', named.error.issues[0]?.message ?? 'is not understood');
  const tag = query.get('language') ?? '';
  const asks = (field: string) => query.getAll(field).some((value) => !isOff(value));
  const detectLanguage = asks('detect_language');
  const choice = readChoice(query.getAll('detect_language').filter((value) => !isOff(value)));
  if (!choice.ok) return choice;
  const warnings = Object.entries(unmet).flatMap(([field, text]) => (asks(field) ? [warnOf(field, text)] : []));
  const terms = readQueryTerms(query);
  if (!terms.ok) return terms;
  const known = { model, detectLanguage, warnings, terms: terms.value };
  if (detectLanguage) return ok({ ...known, ...choice.value });
  if (tag === '' || tag === 'multi' || tag === 'auto') return ok({ ...known, language: undefined });
  const language = transcriptionFields.shape.language.safeParse(tag);
  if (!language.success) return invalid('language', 'must be a language such as "en", a list of them, or "multi"');
  return ok({
    ...known,
    language: language.data === 'auto' ? undefined : language.data,
    languages: listedLanguages(tag),
  });
}

/** Reads the values of `detect_language`: `true`, one language, which is no choice, or several. */
function readChoice(values: readonly string[]): Result<Pick<ListenQuery, 'language' | 'languages'>> {
  const tags = values.filter((value) => value.toLowerCase() !== 'true');
  const list = tags.join(',');
  if (tags.length > 0 && !transcriptionFields.shape.language.safeParse(list).success) {
    return invalid('detect_language', 'must be "true" or a language such as "en", at most 16 times');
  }
  if (tags.length < values.length || tags.length === 0) return ok({ language: undefined });
  const languages = listedLanguages(list);
  return ok(languages ? { language: undefined, languages } : { language: tagOfLanguage(list) });
}

function readQueryTerms(query: URLSearchParams): Result<Term[]> {
  const keyterms = readTerms(
    'keyterm',
    query.getAll('keyterm').map((text) => ({ text })),
  );
  const keywords = readKeywords(query.getAll('keywords'));
  if (!keyterms.ok || !keywords.ok) return keyterms.ok ? keywords : keyterms;
  return readTerms('keywords', [...keyterms.value, ...keywords.value]);
}

function readFlag(query: URLSearchParams, field: string): Result<boolean> {
  const value = query.get(field)?.toLowerCase() ?? 'false';
  if (value !== 'true' && value !== 'false' && value !== '') return invalid(field, 'must be "true" or "false"');
  return ok(value === 'true');
}

function readInteger(query: URLSearchParams, field: string, least: number, most: number): Result<number | undefined> {
  const value = query.get(field);
  if (value === null || value === '') return ok(undefined);
  const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
  if (number >= least && number <= most) return ok(number);
  return invalid(field, `must be an integer from ${least} to ${most}`);
}

/** Default sample rates: telephone companding has one, and Opus is decoded at one (RFC 7845 §5.1). */
const impliedRates: Readonly<Partial<Record<Encoding, number>>> = {
  mulaw: 8_000,
  alaw: 8_000,
  opus: 48_000,
  'ogg-opus': 48_000,
  webm: 48_000,
};

function readFormat(query: URLSearchParams): Result<StreamFormat | undefined> {
  const named = query.get('encoding') ?? '';
  const rate = readInteger(query, 'sample_rate', AUDIO_RATE_MIN_HZ, AUDIO_RATE_MAX_HZ);
  if (!rate.ok) return rate;
  const channels = readInteger(query, 'channels', 1, AUDIO_CHANNELS_MAX);
  if (!channels.ok) return channels;
  if (named === '') return ok(undefined);
  const encoding = encodings.find((one) => one === named);
  if (!encoding) return invalid('encoding', `must be one of ${encodings.join(', ')}`);
  const hertz = rate.value ?? impliedRates[encoding];
  if (hertz === undefined) return no(refuse('field_missing', { field: 'sample_rate' }));
  return ok({ encoding, rate: hertz, channels: channels.value === 2 ? 2 : 1 });
}

function readEndpointing(query: URLSearchParams): Result<number | false> {
  const value = query.get('endpointing')?.toLowerCase() ?? '';
  if (value === 'false') return ok(false);
  if (value === '' || value === 'true') return ok(ENDPOINTING_MS);
  const silence = readInteger(query, 'endpointing', 0, 10_000);
  if (!silence.ok) return invalid('endpointing', 'must be "false" or an integer from 0 to 10000');
  return ok(Math.max(ENDPOINTING_MIN_MS, silence.value ?? ENDPOINTING_MS));
}

/** Reads the query of a WebSocket. Refuses with `field_missing` or `field_invalid`. */
export function readLiveQuery(query: URLSearchParams): Result<LiveQuery> {
  const shared = readShared(query);
  if (!shared.ok) return shared;
  const format = readFormat(query);
  if (!format.ok) return format;
  const multichannel = readFlag(query, 'multichannel');
  if (!multichannel.ok) return multichannel;
  if (multichannel.value && query.get('channels') !== '1') {
    return invalid('multichannel', 'is not available live: open a connection for each channel, or send a recording');
  }
  const endpointing = readEndpointing(query);
  if (!endpointing.ok) return endpointing;
  const utteranceEnd = readInteger(query, 'utterance_end_ms', 500, 10_000);
  if (!utteranceEnd.ok) return utteranceEnd;
  const interim = readFlag(query, 'interim_results');
  if (!interim.ok) return interim;
  const vadEvents = readFlag(query, 'vad_events');
  if (!vadEvents.ok) return vadEvents;
  const options = {
    interim: interim.value,
    endpointingMs: endpointing.value,
    ...(utteranceEnd.value !== undefined && { utteranceEndMs: utteranceEnd.value }),
    ...(shared.value.terms.length > 0 && { terms: [...shared.value.terms] }),
  };
  return ok({ ...shared.value, format: format.value, options, vadEvents: vadEvents.value });
}

/** Encodings that are files as recordings. */
const containers: ReadonlySet<Encoding> = new Set(['ogg-opus', 'webm', 'aac']);

/** Returns the format of bare samples, for which the edge writes a WAV header; undefined for files. */
function readSamples(format: StreamFormat | undefined): Result<WavFormat | undefined> {
  if (!format) return ok(undefined);
  const { encoding, rate, channels } = format;
  if (encoding === 'linear16') return ok({ rate, channels, bits: 16, float: false });
  if (encoding === 'linear32') return ok({ rate, channels, bits: 32, float: true });
  // A container names its own format.
  if (containers.has(encoding)) return ok(undefined);
  return invalid(
    'encoding',
    'must be linear16 or linear32, or the recording a WAV, FLAC, MP3, Ogg, WebM, MP4, AAC or AMR file',
  );
}

/** Reads the query of a recording. Refuses with `field_missing` or `field_invalid`. */
export function readRecordingQuery(query: URLSearchParams): Result<RecordingQuery> {
  const shared = readShared(query);
  if (!shared.ok) return shared;
  const format = readFormat(query);
  if (!format.ok) return format;
  const samples = readSamples(format.value);
  if (!samples.ok) return samples;
  const multichannel = readFlag(query, 'multichannel');
  if (!multichannel.ok) return multichannel;
  const utterances = readFlag(query, 'utterances');
  if (!utterances.ok) return utterances;
  const paragraphs = readFlag(query, 'paragraphs');
  if (!paragraphs.ok) return paragraphs;
  const split = Number(query.get('utt_split') || 0.8);
  if (!(split > 0 && split <= 60)) return invalid('utt_split', 'must be a number of seconds, at most 60');
  const extra = query.getAll('extra').map((pair) => pair.split(/:(.*)/s).slice(0, 2) as [string, string]);
  return ok({
    ...shared.value,
    samples: samples.value,
    multichannel: multichannel.value,
    utterances: utterances.value,
    utteranceSplit: split,
    paragraphs: paragraphs.value,
    tags: query.getAll('tag').slice(0, 16),
    extra: Object.fromEntries(extra.slice(0, 16).map(([key, value = '']) => [key, value])),
  });
}
