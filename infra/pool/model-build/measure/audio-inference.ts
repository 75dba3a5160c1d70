import { fp32Tensor, int32Tensor } from '../../../../shared/kserve/tensor.ts';
import { modelTensors } from '../../agent/asr/recognise.ts';
import type { Inference } from '../../agent/engine/engine.ts';
import { ENGINE_MS } from '../../agent/settings/limits.ts';

/** Returns the inference of one piece of audio, as agents send it: in the most urgent class, for `ENGINE_MS`. */
export const audioInference = (model: string, samples: Float32Array, sequence?: Inference['sequence']): Inference => ({
  model,
  inputs: [
    fp32Tensor('AUDIO', samples, [1, samples.length]),
    int32Tensor('AUDIO_LENGTH', Int32Array.of(samples.length), [1, 1]),
  ],
  outputs: modelTensors.outputs,
  priority: 1,
  timeoutMicros: ENGINE_MS * 1_000,
  signal: AbortSignal.timeout(ENGINE_MS),
  ...(sequence && { sequence }),
});
