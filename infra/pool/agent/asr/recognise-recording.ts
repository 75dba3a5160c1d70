import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import type { SoundBlock } from '../../../../shared/speech/format.ts';
import { MODEL_RATE } from '../audio/mono.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { createRecognition } from './recognise.ts';
import type { Utterance } from './vad/cut.ts';
import { listen, type RecordingTotals } from './vad/listen.ts';
import { Opening } from './vad/opening.ts';

export interface Recording {
  readonly sound: AsyncIterable<Result<SoundBlock>>;
  readonly recognition: Pick<ReturnType<typeof createRecognition>, 'add'>;
  readonly metrics: Pick<Metrics, 'utterance'>;
  /** Recognises each channel by itself instead of their mean. */
  readonly isSeparate?: boolean | undefined;
  /** Keeps half the band of sound above the model's rate (A20). */
  readonly isNarrow?: boolean | undefined;
  /** Decides from the first speech whether the recording is recognised. Absent: it is. */
  readonly admit?: ((opening: Float32Array) => Promise<Result<undefined>>) | undefined;
}

/**
 * Sends decoded sound to the recogniser as utterances. When it resolves all of them are handed over, not all
 * recognised.
 */
export async function recogniseRecording(recording: Recording): Promise<Result<RecordingTotals>> {
  const { sound, recognition, metrics, isSeparate, isNarrow, admit } = recording;
  const opening = admit && new Opening();
  /** Utterances before the decision, which is made within `OPENING_S` of speech. */
  const held: Utterance[] = [];
  let isAdmitted = admit === undefined;
  for await (const event of listen(sound, isSeparate, isNarrow, opening)) {
    if (!event.ok) return event;
    if (event.value.type === 'totals') return ok(event.value.totals);
    if (event.value.type === 'utterance') held.push(event.value.utterance);
    else {
      const admitted = await admit?.(opening?.samples() ?? new Float32Array(0));
      if (admitted && !admitted.ok) return admitted;
      isAdmitted = true;
    }
    for (const utterance of isAdmitted ? held.splice(0) : []) {
      metrics.utterance(utterance.samples.length / MODEL_RATE);
      const added = await recognition.add(utterance);
      if (!added.ok) return added;
    }
  }
  return no(refuse('internal', undefined, 'recording without an end'));
}
