import { refuse } from '../../../../shared/refusal.ts';
import { no, type Result } from '../../../../shared/result.ts';
import {
  type DetectedLanguage,
  type Detector,
  detectorInputs,
  detectorTensors,
  readLanguages,
} from '../asr/detect-language.ts';
import { STREAM_PATIENCE_MS, type Step, type Steps } from './steps.ts';

interface Detection extends Pick<Step, 'class' | 'signal'> {
  readonly detector: Detector;
  readonly steps: Pick<Steps, 'run'>;
}

/** Returns the languages of the first speech of a stream. Refuses with `engine_failed`, and the edge finds another agent. */
export async function detectLive(
  samples: Float32Array,
  { detector, steps, class: priority, signal }: Detection,
): Promise<Result<readonly DetectedLanguage[]>> {
  const outcome = await steps.run({
    ...{ model: detector.model, inputs: detectorInputs(samples), outputs: detectorTensors.outputs },
    ...{ class: priority, signal, stallMs: STREAM_PATIENCE_MS, mayGiveUp: async () => true },
  });
  if (outcome.ok) return readLanguages(outcome.value, detector);
  return no(outcome.refusal ?? refuse('engine_failed', undefined, `language detector: ${outcome.detail}`));
}
