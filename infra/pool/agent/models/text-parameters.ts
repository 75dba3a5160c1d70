import { z } from 'zod';
import { modelDescription } from '../../../../shared/pool/description.ts';
import type { ModelConfig } from '../../models/config/schema.ts';
import { type TextOutput, textOutputs } from '../asr/text/text-reader.ts';
import { tokenForms } from '../asr/text/token-texts.ts';

/** Longest interval of new sound after which a live utterance is decoded again: a word shows in about a second. */
const REDECODE_MS = 800;

/** `parameters` of a model whose output is `TEXT` or `TOKENS`. Paths are relative to the model's folder. */
export const textParameters = z.object({
  task: z.literal('transcribe').default('transcribe'),
  /** BCP 47 tags, separated by commas. */
  language: z.string().min(2),
  precision: z.enum(['fp32', 'fp16', 'int8']).default('fp32'),
  stage: z.enum(['develop-verify', 'grey', 'canary', 'full', 'retired']).default('full'),
  hears: modelDescription.shape.hears,
  family: modelDescription.shape.family,
  sample_rate: z.literal('16000'),
  /** One token per line; required for `TOKENS`. */
  vocabulary: z.string().min(1).optional(),
  token_form: z.enum(tokenForms).default('pieces'),
  /** Longest interval between two decodings of a live utterance, halved while they are quick; 0: recordings only. */
  redecode_milliseconds: z.coerce.number().int().min(0).max(10_000).default(REDECODE_MS),
});

/** How a text model answers: its parameters, and those of its tensors that the agent uses. */
export type TextParameters = z.infer<typeof textParameters> & {
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
};

/** Output of a text model that the agent serves; `undefined` for other models. */
export function textOutputOf({ output, parameters }: ModelConfig): TextOutput | undefined {
  if (!Object.hasOwn(parameters, 'sample_rate') || !Object.hasOwn(parameters, 'language')) return undefined;
  const names = Object.keys(textOutputs) as TextOutput[];
  return names.find((name) => output.some((tensor) => tensor.name === name));
}
