// Messages of Deepgram's `wss /v1/speak`.
import { z } from 'zod';
import { KiB } from '../../shared/bytes.ts';
import { completeLength } from '../../shared/jobs/split-text.ts';
import { publicText, type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { isMarkup, SPEECH_TEXT_CHARACTERS, type SpeechFormat } from '../../shared/speech/speak.ts';
import { modelUuid } from './deepgram-model.ts';

/** Longest message, in UTF-16 units: a text of the longest allowed length, escaped. */
const MESSAGE_UNITS = 32 * KiB;

const speakMessage = z.discriminatedUnion('type', [
  z.object({ type: z.literal('Speak'), text: z.string() }),
  z.object({ type: z.enum(['Flush', 'Clear', 'Close']) }),
]);
export type SpeakMessage = z.infer<typeof speakMessage>;

/** Reads a message of a client. Refuses with `message_too_large`, `json_invalid` or `field_invalid`. */
export function readSpeakMessage(data: string | ArrayBuffer): Result<SpeakMessage> {
  if (typeof data !== 'string') return no(refuse('json_invalid'));
  if (data.length > MESSAGE_UNITS) return no(refuse('message_too_large', { limit: MESSAGE_UNITS }));
  try {
    const parsed = speakMessage.safeParse(JSON.parse(data));
    if (parsed.success) return ok(parsed.data);
    return no(refuse('field_invalid', { field: 'type', rule: 'it is Speak (with text), Flush, Clear or Close' }));
  } catch {
    return no(refuse('json_invalid'));
  }
}

/** Text that is not spoken yet: its last sentence waits for its end or for a `Flush`. */
export class SpeakText {
  #text = '';

  /** Appends a text. Refuses with `text_too_long` one that does not fit; the text so far stays. */
  append(text: string): Result<undefined> {
    const limit = SPEECH_TEXT_CHARACTERS;
    if (this.#text.length + text.length > limit) return no(refuse('text_too_long', { limit, unit: 'characters' }));
    this.#text += text;
    return ok(undefined);
  }

  /** Takes the complete sentences. SSML is one document, which a `Flush` completes. */
  takeSentences(): string {
    const length = isMarkup(this.#text) ? 0 : completeLength(this.#text);
    const sentences = this.#text.slice(0, length);
    this.#text = this.#text.slice(length);
    return sentences;
  }

  take(): string {
    const text = this.#text;
    this.#text = '';
    return text;
  }
}

/** Silence between two sentences, as agents leave within a text. */
const PAUSE_S = 0.25;
/** Byte of silence (G.711), and bytes of a sample; Opus has no bare samples, and this socket none of it. */
const silences = { linear16: [0, 2], mulaw: [0xff, 1], alaw: [0xd5, 1], opus: [0, 0] } as const;

type SampleFormat = Pick<SpeechFormat, 'encoding' | 'sampleRate'>;

/** Returns the bytes of one second of sound. */
export const byteRateOf = ({ encoding, sampleRate }: SampleFormat): number => silences[encoding][1] * sampleRate;

/** Returns the pause between two sentences that are spoken as texts of their own. */
export const pauseOf = (format: SampleFormat): Uint8Array =>
  new Uint8Array(PAUSE_S * byteRateOf(format)).fill(silences[format.encoding][0]);

export const metadataMessage = (request: string, model: string, revision: string): string =>
  JSON.stringify({
    type: 'Metadata',
    request_id: request,
    model_name: model,
    model_version: revision,
    model_uuid: modelUuid(model, revision),
  });

/** `sequence`: number of the flush, from 0. */
export const sequenceMessage = (type: 'Flushed' | 'Cleared', sequence: number): string =>
  JSON.stringify({ type, sequence_id: sequence });

export const warningMessage = (refusal: Refusal): string =>
  JSON.stringify({ type: 'Warning', description: publicText(refusal), code: refusal.reason });
