import { z } from 'zod';
import { wholeText } from '../../shared/speech/openai-answer.ts';
import type { Segment, Transcript, Word } from '../../shared/speech/transcript.ts';
import { joinWords } from '../../shared/speech/words.ts';
import { type Warning, warning } from './deepgram-warning.ts';

const word = z.object({
  word: z.string(),
  start: z.number(),
  end: z.number(),
  confidence: z.number(),
  punctuated_word: z.string(),
});

const sentence = z.object({ text: z.string(), start: z.number(), end: z.number() });
const paragraph = z.object({
  sentences: z.array(sentence),
  num_words: z.number().int(),
  start: z.number(),
  end: z.number(),
});

const alternative = z.object({
  transcript: z.string(),
  confidence: z.number(),
  words: z.array(word),
  paragraphs: z.object({ transcript: z.string(), paragraphs: z.array(paragraph) }).optional(),
});

const utterance = z.object({
  start: z.number(),
  end: z.number(),
  confidence: z.number(),
  channel: z.number().int(),
  transcript: z.string(),
  words: z.array(word),
  id: z.string(),
});

const modelInfo = z.object({ name: z.string(), version: z.string(), arch: z.string() });
export type ModelInfo = z.infer<typeof modelInfo>;

/** `POST /v1/listen`. Source: Deepgram's API description, `ListenV1Response`. */
export const recordingAnswer = z.object({
  metadata: z.object({
    transaction_key: z.literal('deprecated'),
    request_id: z.string(),
    sha256: z.string(),
    /** ISO 8601. */
    created: z.string(),
    duration: z.number(),
    channels: z.number().int(),
    models: z.array(z.string()),
    model_info: z.record(z.string(), modelInfo),
    tags: z.array(z.string()).optional(),
    extra: z.record(z.string(), z.string()).optional(),
    warnings: z.array(warning).optional().describe('Parameters without effect'),
  }),
  results: z.object({
    channels: z.array(
      z.object({
        alternatives: z.array(alternative),
        detected_language: z.string().optional(),
        language_confidence: z.number().optional(),
      }),
    ),
    utterances: z.array(utterance).optional(),
  }),
});

export interface RecordingFacts {
  readonly request: string;
  /** Digest of the received bytes, hexadecimal. */
  readonly sha256: string;
  /** Epoch ms. */
  readonly created: number;
  readonly model: string;
  /** Returns a UUID for an utterance. */
  readonly newId: () => string;
}

export interface RecordingOptions {
  /** A transcript for each channel. */
  readonly multichannel: boolean;
  readonly detectLanguage: boolean;
  readonly utterances: boolean;
  /** Seconds of silence between two utterances. */
  readonly utteranceSplit: number;
  readonly paragraphs: boolean;
  readonly tags: readonly string[];
  readonly extra: Readonly<Record<string, string>>;
  readonly warnings: readonly Warning[];
}

/** Rounds a time, which is a sample count divided by a rate. */
const milli = (seconds: number) => Math.round(seconds * 1_000) / 1_000;

/** Returns a word without the case and punctuation around it, as Deepgram's `word` is. */
const bareWord = (word: string) => word.toLowerCase().replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}\p{M}]+$/gu, '') || word;

export const showWords = (words: readonly Word[]): z.infer<typeof word>[] =>
  words.map(({ word, start, end, confidence }) => ({
    word: bareWord(word),
    start: milli(start),
    end: milli(end),
    confidence,
    punctuated_word: word,
  }));

/** Returns the mean confidence of words, which clients show beside a transcript. */
const confidenceOf = (words: readonly Word[]): number =>
  words.length === 0 ? 0 : words.reduce((sum, { confidence }) => sum + confidence, 0) / words.length;

/** Describes a recognition model. `uuid` names the revision as 128 bits. */
export const showModel = (name: string, version: string): ModelInfo => ({ name, version, arch: 'auricle' });

/** Renders a finished transcript as Deepgram's answer to a recording. `uuid` is that of the model's revision. */
export function renderRecording(
  { segments, final }: Transcript,
  options: RecordingOptions,
  facts: RecordingFacts & { readonly uuid: string },
): z.infer<typeof recordingAnswer> {
  const count = final.channels ?? 1;
  const channels = Array.from({ length: count }, (_, i) => segments.filter(({ channel = 0 }) => channel === i));
  return {
    metadata: {
      transaction_key: 'deprecated',
      request_id: facts.request,
      sha256: facts.sha256,
      created: new Date(facts.created).toISOString(),
      duration: milli(final.durationSeconds),
      channels: count,
      models: [facts.uuid],
      model_info: { [facts.uuid]: showModel(facts.model, final.revision) },
      ...(options.tags.length > 0 && { tags: [...options.tags] }),
      ...(Object.keys(options.extra).length > 0 && { extra: options.extra }),
      ...(options.warnings.length > 0 && { warnings: [...options.warnings] }),
    },
    results: {
      channels: channels.map((own) => ({
        alternatives: [showAlternative(own, options)],
        ...(options.detectLanguage && {
          detected_language: final.language,
          ...(final.languageConfidence !== undefined && { language_confidence: final.languageConfidence }),
        }),
      })),
      ...(options.utterances && {
        utterances: channels
          .flatMap((own, channel) => showUtterances(wordsOf(own), channel, options.utteranceSplit, facts.newId))
          .sort((a, b) => a.start - b.start),
      }),
    },
  };
}

const wordsOf = (segments: readonly Segment[]): Word[] => segments.flatMap(({ words }) => words);

function showAlternative(segments: readonly Segment[], options: RecordingOptions): z.infer<typeof alternative> {
  const words = wordsOf(segments);
  return {
    transcript: wholeText(segments),
    confidence: confidenceOf(words),
    words: showWords(words),
    ...(options.paragraphs && { paragraphs: showParagraphs(segments) }),
  };
}

/** Returns the sentences of a segment: words up to a mark, or all of them where the model writes none. */
function showSentences({ text, start, end, words }: Segment) {
  const sentences: { text: string; start: number; end: number }[] = [];
  let first = 0;
  for (const [at, { word, end }] of words.entries()) {
    if (at + 1 < words.length && !/[.?!。？！]["”’)]?$/u.test(word)) continue;
    const own = words.slice(first, at + 1);
    sentences.push({ text: joinWords(own.map((one) => one.word)), start: milli(own[0]?.start ?? 0), end: milli(end) });
    first = at + 1;
  }
  return sentences.length > 1 ? sentences : [{ text, start: milli(start), end: milli(end) }];
}

/** Renders one paragraph for each segment: a pause ends one. */
function showParagraphs(segments: readonly Segment[]) {
  const spoken = segments.filter(({ text }) => text !== '');
  return {
    transcript: spoken.map(({ text }) => `\n${text}`).join('\n'),
    paragraphs: spoken.map((segment) => ({
      sentences: showSentences(segment),
      num_words: segment.words.length,
      start: milli(segment.start),
      end: milli(segment.end),
    })),
  };
}

/** Groups words that have no pause of `split` seconds between them. */
function showUtterances(
  words: readonly Word[],
  channel: number,
  split: number,
  newId: () => string,
): z.infer<typeof utterance>[] {
  const groups: Word[][] = [];
  for (const next of words) {
    const group = groups.at(-1);
    const last = group?.at(-1);
    if (group && last && next.start - last.end < split) group.push(next);
    else groups.push([next]);
  }
  return groups.map((group) => ({
    start: milli(group[0]?.start ?? 0),
    end: milli(group.at(-1)?.end ?? 0),
    confidence: confidenceOf(group),
    channel,
    transcript: joinWords(group.map(({ word }) => word)),
    words: showWords(group),
    id: newId(),
  }));
}
