import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import {
  amongLanguages,
  type DetectedLanguage,
  decideLanguage,
  detectorInputs,
  detectorTensors,
  languageMembers,
  misdirection,
  readLanguages,
} from '../asr/detect-language.ts';
import type { Task } from '../engine/dispatch.ts';
import { detectorOf } from '../models/served-model.ts';
import type { AgentContext } from '../request/agent-context.ts';

/** Request whose speech is sent to the detector. */
interface Detection {
  readonly context: Pick<AgentContext, 'detector' | 'dispatcher' | 'lease'>;
  readonly ticket: Pick<Task, 'class' | 'tenant'>;
  readonly signal: AbortSignal;
  readonly deadline: number;
  /** Languages among which the speech is; absent: any. */
  readonly languages?: readonly string[] | undefined;
  readonly span?: Task['span'];
}

/** Refuses with `language_uncertain`, or as the engine does. */
async function detectRecorded(
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

/** Detects the language of a recording whose model serves `served`. */
export function createDetection(request: Detection, served: readonly string[]) {
  let detected: DetectedLanguage | undefined;
  return {
    /** Decides from the first speech, which may be none. Refuses with `misdirected` a language of another model. */
    async admit(opening: Float32Array): Promise<Result<undefined>> {
      if (opening.length === 0) return ok(undefined);
      const found = await detectRecorded(opening, request);
      if (!found.ok) return found;
      const elsewhere = misdirection(found.value, served, request.languages);
      detected = found.value;
      return elsewhere ? no(elsewhere) : ok(undefined);
    },
    /** Returns the members of `final` about the language. */
    found: () => languageMembers(detected),
  };
}
