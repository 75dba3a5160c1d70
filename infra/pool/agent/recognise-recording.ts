import { refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import type { SoundBlock } from '../../../shared/speech/format.ts';
import type { Metrics } from './metrics.ts';
import type { createRecognition } from './recognise.ts';
import { MODEL_RATE } from './sound/mono.ts';
import { createVoiceDetector } from './voice/detect.ts';
import { listen, type RecordingTotals } from './voice/listen.ts';

export interface Recording {
  readonly sound: AsyncIterable<Result<SoundBlock>>;
  readonly recognition: Pick<ReturnType<typeof createRecognition>, 'add'>;
  readonly metrics: Pick<Metrics, 'utterance'>;
}

/**
 * From decoded sound to utterances at the recogniser, whoever sent the recording. All of them were handed over when it
 * resolves, and not all recognised. It may go on for a while after the caller has lost interest, so it alone knows when
 * its detector is no longer needed.
 */
export async function recogniseRecording({ sound, recognition, metrics }: Recording): Promise<Result<RecordingTotals>> {
  const detector = await createVoiceDetector();
  try {
    for await (const hearing of listen(sound, detector)) {
      if (!hearing.ok) return hearing;
      if (hearing.value.type === 'heard') return ok(hearing.value.heard);
      metrics.utterance(hearing.value.utterance.samples.length / MODEL_RATE);
      const added = await recognition.add(hearing.value.utterance);
      if (!added.ok) return added;
    }
    return no(refuse('internal', undefined, 'recording without an end'));
  } finally {
    detector.free();
  }
}
