import { fp32Tensor, int32Tensor, type Tensor } from '../../../shared/kserve/tensor.ts';

/** A tone that changes, so that every frame differs from its neighbours. */
export const sound = (samples: number, seed: number): Float32Array =>
  Float32Array.from(
    { length: samples },
    (_, i) => 0.3 * Math.sin(i * i * 1e-6 * seed) + 0.1 * Math.sin(i * 0.05 * seed),
  );

/** Tensors of the reference network. */
export const tensorsOf = (audio: Float32Array): Tensor[] => [
  fp32Tensor('AUDIO', audio, [1, audio.length]),
  int32Tensor('AUDIO_LENGTH', Int32Array.of(audio.length), [1, 1]),
];
