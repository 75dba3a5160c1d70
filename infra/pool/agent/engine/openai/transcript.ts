import { z } from 'zod';
import { encodeBytesElements } from '../../../../../shared/kserve/bytes-elements.ts';
import { fp32Tensor, type Tensor } from '../../../../../shared/kserve/tensor.ts';
import { wordsIn } from '../../../../../shared/speech/words.ts';
import { alignWords, type Span } from './align.ts';

const word = z.object({
  word: z.string(),
  start: z.number(),
  end: z.number(),
  /** speaches and whisper.cpp. */
  probability: z.number().optional(),
});

const segment = z.object({
  text: z.string(),
  start: z.number(),
  end: z.number(),
  avg_logprob: z.number().optional(),
  /** whisper.cpp lists words here. */
  words: z.array(word).optional().catch(undefined),
});

/** `json` and `verbose_json`. A list of another shape costs the times, not the text. */
const transcript = z.object({
  text: z.string(),
  words: z.array(word).optional().catch(undefined),
  segments: z.array(segment).optional().catch(undefined),
});

const spanOfWord = ({ word: text, start, end, probability }: z.infer<typeof word>): Span => ({
  ...{ text, start, end },
  confidence: probability,
});

const spanOfSegment = ({ text, start, end, avg_logprob: logProb }: z.infer<typeof segment>): Span => ({
  ...{ text, start, end },
  confidence: logProb === undefined ? undefined : Math.exp(Math.min(0, logProb)),
});

/**
 * Reads an answer of `POST /v1/audio/transcriptions` as the tensors of a text model: `TEXT`, and `WORD_TIMES` and
 * `WORD_CONFIDENCE` where the server gives them for words or segments. Returns `undefined` for any other body.
 */
export function readTranscript(body: Uint8Array): Tensor[] | undefined {
  const read = transcript.safeParse(jsonOf(body));
  if (!read.success) return undefined;
  const { text, words: listed = [], segments = [] } = read.data;
  const spelled = wordsIn(text);
  const spoken = listed.length > 0 ? listed : segments.flatMap(({ words }) => words ?? []);
  const byWord = alignWords(spelled, spoken.map(spanOfWord));
  const bySegment = alignWords(spelled, segments.map(spanOfSegment));
  const times = byWord ?? bySegment;
  const shares = [byWord, bySegment]
    .map((spans) => spans?.flatMap(({ confidence }) => (confidence === undefined ? [] : [confidence])))
    .find((found) => found?.length === spelled.length);
  const element = encodeBytesElements([new TextEncoder().encode(text)]);
  return [
    { name: 'TEXT', datatype: 'BYTES', shape: [1, 1], bytes: element },
    ...(times ? [fp32Tensor('WORD_TIMES', Float32Array.from(times.flatMap(({ start, end }) => [start, end])))] : []),
    ...(shares ? [fp32Tensor('WORD_CONFIDENCE', Float32Array.from(shares))] : []),
  ];
}

/** Returns the JSON value of a body, `undefined` for another text. */
export function jsonOf(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
}
