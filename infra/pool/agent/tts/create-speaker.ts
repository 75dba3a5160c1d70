import { PROJECT_SEGMENT_CHARACTERS } from '../../../../shared/jobs/split-text.ts';
import { fp32Tensor, int32Tensor, readFp32, type Tensor } from '../../../../shared/kserve/tensor.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { SPEECH_RATE_MAX, SPEECH_RATE_MIN } from '../../../../shared/speech/speak.ts';
import type { Dispatcher } from '../engine/dispatch.ts';
import { ENGINE_MS } from '../settings/limits.ts';
import { cutSpoken } from './cut-spoken.ts';
import { type SpeakParameters, speakTensors } from './parameters.ts';
import type { Speaker, SpeechOptions } from './speaker.ts';
import { refuseForeign } from './speech-plan.ts';
import { foreignLetters, spellOut } from './spell-out.ts';
import { joinSounds, trimSilence } from './trim-silence.ts';

/** Spelled-out text sent to a voice at once: about ten seconds, as long as its training texts. */
const SPEAK_CHARACTERS = 140;
/** Sound of one such piece: ten seconds at half the speed, and as much again for slow voices. */
const SPEAK_S = 40;

export interface SpeakerOptions {
  readonly model: string;
  readonly parameters: Pick<SpeakParameters, 'voices' | 'symbols' | 'sample_rate' | 'ssml'>;
  readonly run: Dispatcher['run'];
  readonly now: () => number;
}

/** Sound in an answer of the engine. */
function readSound(outputs: ReadonlyMap<string, Tensor>, most: number): Result<Float32Array> {
  const audio = outputs.get('AUDIO');
  const sound = audio && readFp32(audio);
  if (!sound?.ok) return no(refuse('engine_failed', undefined, 'engine answer: no sound'));
  const { value } = sound;
  // An overflow in the network would be a loud bang.
  if (value.length > most || !value.every(Number.isFinite))
    return no(refuse('engine_failed', undefined, `engine answer: ${value.length} samples that are no speech`));
  return ok(value);
}

/** Places of the characters in `symbols`; what the voice does not know becomes a space. */
function numbersOf(text: string, symbols: string): Int32Array {
  const space = symbols.indexOf(' ');
  return Int32Array.from(text, (sign) => {
    const place = symbols.indexOf(sign);
    return place < 0 ? space : place;
  });
}

/** Checked options: `voice` is a position. */
interface Manner {
  readonly voice: number;
  readonly rate: number;
  readonly pitch: number;
}

function checkOptions({ voice, rate = 1, pitch = 1 }: SpeechOptions, voices: readonly string[]): Result<Manner> {
  const place = voice === undefined ? 0 : voices.indexOf(voice);
  if (place < 0) return no(refuse('voice_unknown', { voices: voices.join(', ') }));
  const slowest = SPEECH_RATE_MIN;
  const fastest = SPEECH_RATE_MAX;
  if (!(rate >= slowest && rate <= fastest))
    return no(refuse('field_invalid', { field: 'rate', rule: `a number from ${slowest} to ${fastest}` }));
  return ok({ voice: place, rate, pitch });
}

/**
 * Creates a voice of the repository. Its work has the class `batch` unless `place` names another. The pieces of one text
 * are spoken one after the other, so that a text never has more than one slot.
 */
export function createSpeaker({ model, parameters, run: dispatch, now }: SpeakerOptions): Speaker {
  const { voices, symbols, ssml } = parameters;
  // A voice that takes `prosody` has an input for the pitch (`readModel`).
  const hasPitch = ssml.includes('prosody');
  const sampleRate = Number(parameters.sample_rate);
  const mostSamples = SPEAK_S * sampleRate;

  async function speakPiece(
    text: string,
    { voice, rate, pitch }: Manner,
    { place, run = dispatch }: SpeechOptions,
    signal: AbortSignal,
  ): Promise<Result<Float32Array>> {
    // As it was taught: a space before the first word, and something that ends the sentence.
    const numbers = numbersOf(` ${text}${/[,.?]$/.test(text) ? '' : '.'}`, symbols);
    const answer = await run({
      model,
      inputs: [
        int32Tensor('TEXT', numbers, [1, numbers.length]),
        int32Tensor('VOICE', Int32Array.of(voice), [1, 1]),
        fp32Tensor('RATE', Float32Array.of(rate), [1, 1]),
        ...(hasPitch ? [fp32Tensor('PITCH', Float32Array.of(pitch), [1, 1])] : []),
      ],
      outputs: speakTensors.outputs,
      ...(place ?? { class: 'batch', deadline: now() + ENGINE_MS }),
      signal,
    });
    return answer.ok ? readSound(answer.value, mostSamples) : answer;
  }

  return {
    model,
    sampleRate,
    async speak(text, options, signal) {
      const most = PROJECT_SEGMENT_CHARACTERS;
      if (text.length > most) return no(refuse('text_too_long', { limit: most, unit: 'characters' }));
      const wanted = checkOptions(options, voices);
      if (!wanted.ok) return wanted;
      const { rate } = wanted.value;
      const pieces = cutSpoken(spellOut(text), SPEAK_CHARACTERS);
      if (pieces.length === 0) return no(refuse('text_unspeakable'));
      const foreign = foreignLetters(text);
      if (foreign !== undefined) return no(refuseForeign(foreign));
      const parts: { sound: Float32Array; silence: number }[] = [];
      for (const piece of pieces) {
        const sound = await speakPiece(piece.text, wanted.value, options, signal);
        if (!sound.ok) return sound;
        const trimmed = trimSilence(sound.value, sampleRate);
        parts.push({ sound: trimmed, silence: Math.round((piece.pauseMs * sampleRate) / 1_000 / rate) });
      }
      const spoken = joinSounds(parts);
      return spoken.some((sample) => sample !== 0)
        ? ok(spoken)
        : no(refuse('engine_failed', undefined, 'only silence'));
    },
  };
}
