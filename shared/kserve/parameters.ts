import { z } from 'zod';
import { atMost } from './at-most.ts';

/** Parameters of one request, of a tensor in it or of a requested output; clients send under ten. */
export const PARAMETERS_MAX = 64;

/** Request and tensor parameters: scalars only, as the protocol says. */
export const parameterValue = z.union([z.string(), z.number(), z.boolean()]);
const few = <T extends z.ZodType>(schema: T) => atMost(PARAMETERS_MAX, 'parameters', schema);
export const parameters = few(z.record(z.string(), parameterValue));
export type Parameters = z.infer<typeof parameters>;

const sequenceId = z.union([z.string(), z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER)]);
const whole = z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER);

/**
 * The request parameters with a meaning of their own; anything else is passed through. An id of 0 or '' means "not part
 * of a sequence"; priority 0 is the model's default and 1 the highest; the timeout counts microseconds in the queue.
 */
export const requestParameters = few(
  z
    .object({
      sequence_id: sequenceId.optional(),
      sequence_start: z.boolean().optional(),
      sequence_end: z.boolean().optional(),
      priority: whole.optional(),
      timeout: whole.optional(),
      binary_data_output: z.boolean().optional(),
    })
    .catchall(parameterValue),
);
export type RequestParameters = z.infer<typeof requestParameters>;
