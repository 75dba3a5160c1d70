import { refuse } from '../../../../shared/refusal.ts';
import { no, type Result } from '../../../../shared/result.ts';
import {
  amongLanguages,
  type DetectedLanguage,
  decideLanguage,
  detectorInputs,
  detectorTensors,
  readLanguages,
} from '../asr/detect-language.ts';
import type { Dispatcher, Task } from '../engine/dispatch.ts';
import { detectorOf, type LeasedModel, type ServedModel } from './served-model.ts';

/** Work whose speech is sent to the detector. */
export interface Detection {
  readonly context: {
    readonly detector: () => ServedModel | undefined;
    readonly dispatcher: Pick<Dispatcher, 'run'>;
    readonly lease: (model: ServedModel, signal: AbortSignal) => Promise<LeasedModel | undefined>;
  };
  readonly ticket: Pick<Task, 'class' | 'tenant'>;
  readonly signal: AbortSignal;
  readonly deadline: number;
  /** Languages among which the speech is; absent: any. */
  readonly languages?: readonly string[] | undefined;
  readonly span?: Task['span'];
}

/** Returns the language of the first speech. Refuses with `language_uncertain`, or as the engine does. */
export async function detectSpeech(
  speech: Float32Array,
  { context, ticket, signal, deadline, languages: choice, span }: Detection,
): Promise<Result<DetectedLanguage>> {
  const served = context.detector();
  const leased = served && (await context.lease(served, signal));
  if (!leased) return no(refuse('pool_busy', undefined, 'no language detector is loaded'));
  try {
    const detector = detectorOf(leased.model);
    const outputs = await context.dispatcher.run({
      ...{ model: detector.model, inputs: detectorInputs(speech), outputs: detectorTensors.outputs },
      ...{ class: ticket.class, tenant: ticket.tenant, deadline, signal, span },
    });
    const languages = outputs.ok ? readLanguages(outputs.value, detector) : outputs;
    return languages.ok ? decideLanguage(amongLanguages(languages.value, choice), speech.length) : languages;
  } finally {
    leased.release();
  }
}
