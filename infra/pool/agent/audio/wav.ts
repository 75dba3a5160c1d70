import { wavHeader } from '../../../../shared/speech/wav-header.ts';
import { MODEL_RATE } from './mono.ts';

/** Samples as a WAV file of one channel of 16 bits at 16 kHz. Shares their memory. */
export const wavOf = (samples: Int16Array): Uint8Array[] => [
  wavHeader({ rate: MODEL_RATE, bytes: samples.byteLength }),
  new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength),
];
