import { MODEL_RATE } from '../audio/mono.ts';
import type { ServedModel } from '../models/served-model.ts';

/** Sound that a model of a language was given counts as if it had come in a file. */
export const soundSeconds = ({ description }: ServedModel, samples: number): number =>
  description.languages.includes('zxx') ? 0 : samples / MODEL_RATE;
