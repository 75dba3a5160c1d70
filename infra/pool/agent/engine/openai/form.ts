import type { Body } from '../../../../../shared/kserve/body.ts';
import { wavOf } from '../../audio/wav.ts';

/**
 * Forms of an answer, the richest first: times of words and segments, times of segments, text. A server that knows
 * fewer refuses the others.
 */
export const answerForms = [
  [
    ['response_format', 'verbose_json'],
    ['timestamp_granularities[]', 'word'],
    ['timestamp_granularities[]', 'segment'],
  ],
  [['response_format', 'verbose_json']],
  [['response_format', 'json']],
] as const;

export interface TranscriptionForm {
  /** Id at the server. */
  readonly model: string;
  /** One channel at 16 kHz, -1 to 1. */
  readonly samples: Float32Array;
  /** Primary subtag of the only language of the model; absent, the server detects it. */
  readonly language: string | undefined;
  /** Words that the request names; empty without. */
  readonly prompt: string;
  readonly answer: (typeof answerForms)[number];
}

function integersOf(samples: Float32Array): Int16Array {
  const integers = new Int16Array(samples.length);
  for (let i = 0; i < samples.length; i++)
    integers[i] = Math.round(Math.max(-1, Math.min(1, samples[i] as number)) * 32_767);
  return integers;
}

/** Returns the body of `POST /v1/audio/transcriptions`: the sound as a WAV file of 16 bits. */
export async function encodeForm({ model, samples, language, prompt, answer }: TranscriptionForm): Promise<Body> {
  const form = new FormData();
  form.append('model', model);
  for (const [name, value] of answer) form.append(name, value);
  if (language !== undefined) form.append('language', language);
  if (prompt !== '') form.append('prompt', prompt);
  const sound = new Blob(wavOf(integersOf(samples)) as Uint8Array<ArrayBuffer>[], { type: 'audio/wav' });
  form.append('file', sound, 'audio.wav');
  const encoded = new Response(form);
  const bytes = new Uint8Array(await encoded.arrayBuffer());
  return {
    headers: { 'content-type': encoded.headers.get('content-type') ?? '' },
    chunks: [bytes],
    byteLength: bytes.byteLength,
  };
}
