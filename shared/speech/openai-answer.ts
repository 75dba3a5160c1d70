import { z } from 'zod';
import { type Logprob, logprob, logprobsOf } from './logprobs.ts';
import type { ResponseFormat, TranscriptionForm } from './openai-form.ts';
import { renderSrt, renderVtt } from './subtitles.ts';
import type { Segment, Transcript } from './transcript.ts';
import { joinWords } from './words.ts';

const duration = z.object({ type: z.literal('duration'), seconds: z.number().int() });

/** `response_format=json`. */
export const transcription = z.object({
  text: z.string(),
  logprobs: z.array(logprob).optional().describe('Of each word, if requested'),
  usage: duration,
});

const whisperSegment = z.object({
  id: z.number().int(),
  seek: z.number().int(),
  start: z.number(),
  end: z.number(),
  text: z.string(),
  tokens: z.array(z.number().int()),
  temperature: z.number(),
  avg_logprob: z.number(),
  compression_ratio: z.number(),
  no_speech_prob: z.number(),
});

/** `response_format=verbose_json`. */
export const verboseTranscription = z.object({
  task: z.literal('transcribe'),
  language: z.string(),
  language_confidence: z.number().optional().describe('Probability of a language that was detected'),
  duration: z.number(),
  text: z.string(),
  words: z.array(z.object({ word: z.string(), start: z.number(), end: z.number() })).optional(),
  segments: z.array(whisperSegment).optional(),
  usage: duration,
});

export interface Rendered {
  readonly contentType: string;
  readonly body: string;
}

/** Content types. Official clients parse by them: JSON under another type stays a string, and SRT as JSON throws. */
const contentTypes: Readonly<Record<ResponseFormat, string>> = {
  json: 'application/json',
  verbose_json: 'application/json',
  text: 'text/plain; charset=utf-8',
  srt: 'application/x-subrip; charset=utf-8',
  vtt: 'text/vtt; charset=utf-8',
};

const renderers: Readonly<Record<ResponseFormat, (transcript: Transcript, form: TranscriptionForm) => string>> = {
  json: (transcript, form) => JSON.stringify(brief(transcript, form)),
  verbose_json: (transcript, form) => JSON.stringify(verbose(transcript, form)),
  text: ({ segments }) => `${wholeText(segments)}\n`,
  srt: ({ segments }) => renderSrt(segments),
  vtt: ({ segments }) => renderVtt(segments),
};

/** Renders a finished transcript in the requested format. Runs at the edge and in a sealing client. */
export function renderTranscript(transcript: Transcript, form: TranscriptionForm): Rendered {
  return {
    contentType: contentTypes[form.responseFormat],
    body: renderers[form.responseFormat](transcript, form),
  };
}

const alwaysWordy: ReadonlySet<ResponseFormat> = new Set(['srt', 'vtt']);

/** Reports whether the answer to a form needs the words of segments, and not the text alone. */
export const needsWords = ({ responseFormat, granularities, logprobs }: TranscriptionForm): boolean =>
  logprobs || alwaysWordy.has(responseFormat) || (responseFormat === 'verbose_json' && granularities.includes('word'));

export const wholeText = (segments: readonly Segment[]): string => joinWords(segments.map(({ text }) => text));

/** Metered by duration, in whole seconds as the hosted interface counts them. */
export const usage = ({ final }: Pick<Transcript, 'final'>) => ({
  type: 'duration' as const,
  seconds: Math.ceil(final.durationSeconds),
});

/** Log probabilities of all words of a transcript. */
export const allLogprobs = (segments: readonly Segment[]): Logprob[] =>
  logprobsOf(
    segments.flatMap(({ words }) => words),
    '',
  );

const brief = (transcript: Transcript, { logprobs }: TranscriptionForm): z.infer<typeof transcription> => ({
  text: wholeText(transcript.segments),
  ...(logprobs && { logprobs: allLogprobs(transcript.segments) }),
  usage: usage(transcript),
});

function verbose(transcript: Transcript, form: TranscriptionForm): z.infer<typeof verboseTranscription> {
  const { final, segments } = transcript;
  return {
    task: 'transcribe',
    language: languageName(final.language),
    ...(final.languageConfidence !== undefined && { language_confidence: final.languageConfidence }),
    duration: milli(final.durationSeconds),
    text: wholeText(segments),
    ...(form.granularities.includes('word') && {
      words: segments.flatMap(({ words }) =>
        words.map(({ word, start, end }) => ({ word, start: milli(start), end: milli(end) })),
      ),
    }),
    ...(form.granularities.includes('segment') && {
      segments: segments.map((segment) => verboseSegment(segment, form.temperature)),
    }),
    usage: usage(transcript),
  };
}

/**
 * The shape is Whisper's. A CTC model has no token ids, no compression to judge and no separate estimate of silence
 * (voice detection came before), so those hold neutral values that pass the customary quality thresholds.
 */
const verboseSegment = (segment: Segment, temperature: number): z.infer<typeof whisperSegment> => ({
  id: segment.index,
  seek: Math.round(segment.start * 100),
  start: milli(segment.start),
  end: milli(segment.end),
  text: segment.text,
  tokens: [],
  temperature,
  avg_logprob: segment.logProbability,
  compression_ratio: 1,
  no_speech_prob: 0,
});

/** Rounds a time, which is a sample count divided by a rate. */
const milli = (seconds: number) => Math.round(seconds * 1_000) / 1_000;

const english = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'code' });

/** Returns `english` for `en`, as the hosted interface does. An unknown tag stays as it is. */
function languageName(tag: string): string {
  try {
    return (english.of(tag.split('-')[0] as string) ?? tag).toLowerCase();
  } catch {
    return tag;
  }
}
