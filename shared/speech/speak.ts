// Speech synthesis in one request: what edge and agent agree on (`shared/pool/PROTOCOL.md`).
import { z } from 'zod';

/** Longest text of one request, markup included: OpenAI's limit, about five minutes of speech. */
export const SPEECH_TEXT_CHARACTERS = 4_096;
/** Slowest speech: slower speech falls apart into single sounds. */
export const SPEECH_RATE_MIN = 0.5;
/** Fastest speech: faster speech is hard to understand. */
export const SPEECH_RATE_MAX = 2;

/**
 * Reports whether a text is markup (SSML): it begins with a tag, a comment or a declaration. `5 < 6` and `<3` are
 * text.
 */
export const isMarkup = (text: string): boolean => /^\s*<[\p{L}!?]/u.test(text);

/** Encodings of synthesised speech. Opus comes in Ogg; PCM and G.711 as bare samples or in a WAV file. */
export const speechEncodings = ['linear16', 'mulaw', 'alaw', 'opus'] as const;
/** Sample rates of PCM and G.711, Hz: those of Deepgram's `linear16`. */
export const speechRates = [8_000, 16_000, 24_000, 32_000, 48_000] as const;

export const speechFormat = z.object({
  encoding: z.enum(speechEncodings),
  container: z.enum(['wav', 'ogg', 'none']),
  sampleRate: z.union(speechRates.map((rate) => z.literal(rate))),
});
export type SpeechFormat = z.infer<typeof speechFormat>;

/** Record 0 of a request for speech. The records behind it are the text in UTF-8, plain or SSML. */
export const speakHead = z.object({
  v: z.literal(1),
  task: z.literal('speak'),
  model: z.string(),
  /** Name of a voice of the model; its first one by default. */
  voice: z.string().max(64).optional(),
  /** 1 is the natural rate of the voice, 2 twice as fast. */
  rate: z.number().min(SPEECH_RATE_MIN).max(SPEECH_RATE_MAX).optional(),
  ...speechFormat.shape,
});
export type SpeakHead = z.infer<typeof speakHead>;
