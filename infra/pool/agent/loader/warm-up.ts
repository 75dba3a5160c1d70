import { inputsOf, tensorsOf } from '../asr/recognise.ts';
import { MODEL_RATE } from '../audio/mono.ts';
import type { Engine } from '../engine/engine.ts';
import { engineModelOf, type ServedModel } from '../models/served-model.ts';
import { createSequenceIds } from '../stream/sequence-ids.ts';

/** Longest first inference: compilers and allocators of an accelerator work in it. */
const WARM_UP_MS = 60_000;

/**
 * Runs the first inference of a speech model, and of its streaming model, on silence, so that no caller waits for it.
 * Returns the failure.
 */
export async function warmUp(engine: Pick<Engine, 'infer'>, model: ServedModel): Promise<string | undefined> {
  if (!model.recogniser) return undefined;
  const { recogniser } = model;
  const { outputs } = tensorsOf(recogniser);
  const run = async (name: string, samples: number, sequence?: { id: number; start: boolean; end: boolean }) => {
    const outcome = await engine.infer({
      model: name,
      inputs: inputsOf(new Float32Array(samples), recogniser),
      outputs,
      priority: 0,
      timeoutMicros: WARM_UP_MS * 1_000,
      signal: AbortSignal.timeout(WARM_UP_MS),
      ...(sequence && { sequence }),
    });
    return outcome.ok ? undefined : outcome.detail;
  };
  const failure = await run(engineModelOf(model), MODEL_RATE);
  // A text model decodes streams as it does recordings, without a sequence.
  if (failure !== undefined || !model.live || 'text' in model.recogniser) return failure;
  const id = createSequenceIds(Math.random())();
  return run(model.live.model, model.live.windowSamples, { id, start: true, end: true });
}
