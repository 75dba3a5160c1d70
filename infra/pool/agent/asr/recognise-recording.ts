import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { SoundBlock } from '../../../../shared/speech/format.ts';
import { MODEL_RATE } from '../audio/mono.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { createRecognition } from './recognise.ts';
import { listen, type RecordingTotals } from './vad/listen.ts';

export interface Recording {
  readonly sound: AsyncIterable<Result<SoundBlock>>;
  readonly recognition: Pick<ReturnType<typeof createRecognition>, 'add'>;
  readonly metrics: Pick<Metrics, 'utterance'>;
  /** Recognises each channel by itself instead of their mean. */
  readonly isSeparate?: boolean | undefined;
  /** Keeps half the band of sound above the model's rate (A20). */
  readonly isNarrow?: boolean | undefined;
}

/**
 * Sends decoded sound to the recogniser as utterances. When it resolves all of them are handed over, not all
 * recognised.
 */
export async function recogniseRecording(recording: Recording): Promise<Result<RecordingTotals>> {
  const { sound, recognition, metrics, isSeparate, isNarrow } = recording;
  for await (const event of listen(sound, isSeparate, isNarrow)) {
    if (!event.ok) return event;
    if (event.value.type === 'totals') return ok(event.value.totals);
    metrics.utterance(event.value.utterance.samples.length / MODEL_RATE);
    const added = await recognition.add(event.value.utterance);
    if (!added.ok) return added;
  }
  return no(refuse('internal', undefined, 'recording without an end'));
}
