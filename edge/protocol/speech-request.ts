// Requests for speech as OpenAI's and Deepgram's clients send them.
import { z } from 'zod';
import { refuse } from '../../shared/refusal.ts';
import { requestedModel } from '../../shared/registry/names.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import {
  SPEECH_RATE_MAX,
  SPEECH_RATE_MIN,
  SPEECH_TEXT_CHARACTERS,
  type SpeechFormat,
  speechEncodings,
  speechRates,
} from '../../shared/speech/speak.ts';
import { refuseField } from '../http/refuse-field.ts';

/** A request for speech, without its text. */
export interface SpeechOptions extends SpeechFormat {
  /** Undefined for the default. */
  readonly model: string | undefined;
  readonly voice?: string | undefined;
  readonly rate?: number | undefined;
}

/** Sample rates of OpenAI's `wav` and `pcm`: a WAV file names its own, bare samples are 24 kHz. */
const formats = {
  wav: { encoding: 'linear16', container: 'wav', sampleRate: 16_000 },
  pcm: { encoding: 'linear16', container: 'none', sampleRate: 24_000 },
  opus: { encoding: 'opus', container: 'ogg', sampleRate: 48_000 },
} as const satisfies Readonly<Record<string, SpeechFormat>>;

const NO_ENCODER = 'no encoder with a permissive licence exists for mp3 and aac';
const speechVoice = z.string().min(1).max(64);
const speechText = z.string().min(1).max(SPEECH_TEXT_CHARACTERS);
const speechRate = z.number().min(SPEECH_RATE_MIN).max(SPEECH_RATE_MAX);

/** Body of `POST /v1/audio/speech`. */
export const speechBody = z.object({
  model: requestedModel,
  input: speechText.describe('Text, or SSML: then it begins with `<` and a letter, `!` or `?`.'),
  voice: z
    .union([speechVoice, z.object({ id: speechVoice })], { error: 'must be the name of a voice' })
    .optional()
    .describe('By default the first of the model; `GET /v1/audio/voices` lists them.'),
  response_format: z
    .enum(['wav', 'pcm', 'opus'], { error: `must be wav, pcm or opus: ${NO_ENCODER}` })
    .optional()
    .describe('Default: wav.'),
  speed: speechRate.optional(),
  instructions: z.string().max(SPEECH_TEXT_CHARACTERS).optional().describe('Ignored.'),
  stream_format: z.enum(['audio', 'sse']).optional(),
});

/** Body of `POST /v1/speak`. */
export const speakBody = z.object({ text: speechText.describe('Text, or SSML.') });

export interface OpenAiSpeech {
  readonly text: string;
  readonly options: SpeechOptions;
  /** Wraps the sound in server-sent events. */
  readonly framed: boolean;
}

/** Reads a body of OpenAI's clients. Refuses with `field_missing` or `field_invalid`. */
export function readSpeechBody(json: unknown): Result<OpenAiSpeech> {
  const parsed = speechBody.safeParse(json);
  if (!parsed.success) return no(refuseField(parsed.error, json));
  const { model, input, voice, response_format: format = 'wav', speed, stream_format: stream } = parsed.data;
  const name = typeof voice === 'object' ? voice.id : voice;
  return ok({
    text: input,
    options: { model, voice: name, rate: speed, ...formats[format] },
    framed: stream === 'sse',
  });
}

/** Reads a text of Deepgram's clients. */
export function readSpeakBody(json: unknown): Result<string> {
  const parsed = speakBody.safeParse(json);
  return parsed.success ? ok(parsed.data.text) : no(refuseField(parsed.error, json));
}

const invalid = (field: string, rule: string): Result<never> => no(refuse('field_invalid', { field, rule }));

/** Sample rates of each encoding, the default first. */
const rates: Readonly<Record<SpeechFormat['encoding'], readonly number[]>> = {
  linear16: [24_000, ...speechRates],
  mulaw: [8_000, 16_000],
  alaw: [8_000, 16_000],
  // The rate at which Opus counts.
  opus: [48_000],
};

function readFormat(query: URLSearchParams, isLive: boolean): Result<SpeechFormat> {
  const known = isLive ? speechEncodings.filter((one) => one !== 'opus') : speechEncodings;
  const named = query.get('encoding') || 'linear16';
  const encoding = known.find((one) => one === named);
  if (!encoding) return invalid('encoding', `must be one of ${known.join(', ')}: ${NO_ENCODER}`);
  const containers = isLive ? ['none'] : encoding === 'opus' ? ['ogg'] : ['wav', 'none'];
  const container = query.get('container') || containers[0];
  if (!containers.some((one) => one === container)) {
    return invalid('container', `must be ${containers.join(' or ')} with ${encoding}`);
  }
  const [first = 24_000] = rates[encoding];
  const rate = Number(query.get('sample_rate') || first);
  if (!rates[encoding].includes(rate)) {
    return invalid('sample_rate', `must be ${[...new Set(rates[encoding])].join(', ')} with ${encoding}`);
  }
  const sampleRate = speechRates.find((one) => one === rate) ?? 24_000;
  return ok({ encoding, container: container as SpeechFormat['container'], sampleRate });
}

/*
 * Accepted without effect: `bit_rate` (a fixed one for Opus), `mip_opt_out` (nothing is stored), `tag`,
 * `callback_method`, and unknown members.
 */

/** Reads the query of `/v1/speak`, of a WebSocket if `isLive`. Refuses with `field_invalid`. */
export function readSpeakQuery(query: URLSearchParams, isLive: boolean): Result<SpeechOptions> {
  const model = query.get('model') ?? undefined;
  const named = requestedModel.optional().safeParse(model);
  if (!named.success) return invalid('model', named.error.issues[0]?.message ?? 'is not understood');
  const voice = query.get('voice') ?? undefined;
  if (voice !== undefined && !speechVoice.safeParse(voice).success) return invalid('voice', 'is not a name');
  if (query.get('callback')) return invalid('callback', 'is not available: the answer comes on this connection');
  const speed = query.get('speed');
  const rate = speed ? Number(speed) : undefined;
  if (rate !== undefined && !speechRate.safeParse(rate).success) {
    return invalid('speed', `must be a number from ${SPEECH_RATE_MIN} to ${SPEECH_RATE_MAX}`);
  }
  const format = readFormat(query, isLive);
  return format.ok ? ok({ model, voice, rate, ...format.value }) : format;
}
