import { z } from 'zod';
import { ssmlElements } from './ssml.ts';

const unique = (parts: readonly string[]) => new Set(parts).size === parts.length;

/** Required `parameters` of a voice. */
export const speakParameters = z.object({
  task: z.literal('speak'),
  /** BCP 47 tags, separated by commas. English only: texts of other languages would be spelled out wrongly. */
  language: z.string().regex(/^en\b/i, 'only English texts can be spelled out'),
  precision: z.enum(['fp32', 'fp16', 'int8']).default('fp32'),
  stage: z.enum(['develop-verify', 'grey', 'canary', 'full', 'retired']).default('full'),
  sample_rate: z.literal('16000'),
  /** Names of the speakers, separated by commas; the first one speaks unless another is asked for. */
  voices: z
    .string()
    .transform((names) => names.split(',').map((name) => name.trim()))
    .refine(
      (names) => unique(names) && names.every((name) => /^[a-z0-9][a-z0-9_-]{0,63}$/i.test(name)),
      'not a list of names',
    ),
  /** The characters the network knows: `TEXT` holds their places in this line. */
  symbols: z.string().refine((symbols) => unique([...symbols]) && symbols.includes(' '), 'not a set of characters'),
  /** SSML elements that the voice takes, separated by commas; absent: plain text only. */
  ssml: z
    .string()
    .default('')
    .transform((names) => names.split(',').flatMap((name) => name.trim() || []))
    .refine(
      (names) => names.every((name) => ssmlElements.some((known) => known === name)),
      `not a list of ${ssmlElements.join(', ')}`,
    )
    .refine((names) => names.length === 0 || names.includes('speak'), 'speak is the root'),
});

export type SpeakParameters = z.infer<typeof speakParameters>;

/** Tensors of a voice; one that takes `prosody` has an input `PITCH`, too. */
export const speakTensors = { inputs: ['TEXT', 'VOICE', 'RATE'], outputs: ['AUDIO'] } as const;
