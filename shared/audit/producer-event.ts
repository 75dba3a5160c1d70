// Events of producers about themselves and about missing events.
import { z } from 'zod';
import { caller, origin, request } from './event-parts.ts';

export const producerEvents = [
  /**
   * Opens a period of reports: the first event of an epoch or after a rest. `previous`: the preceding epoch,
   * if it ended without a close, and its last number known to be stored.
   */
  z.object({
    ...origin,
    type: z.literal('producer.open'),
    previous: z.string().optional(),
    previousLast: z.number().int().optional(),
  }),
  /** Closes a period: no number after `last`, its own, exists until the next `producer.open`. */
  z.object({ ...origin, type: z.literal('producer.close'), last: z.number().int() }),
  /** Events dropped before they reached the log. */
  z.object({ ...origin, type: z.literal('gap'), lost: z.number().int(), from: z.number().int(), to: z.number().int() }),
  /**
   * An attempt without a reported end, by the id of the request. A later end of the request takes
   * precedence.
   */
  z.object({
    ...origin,
    ...request,
    ...caller,
    type: z.literal('inference.unknown'),
    /** Time of the worker's last sign of life, epoch ms. */
    heard: z.number().int().optional(),
  }),
] as const;
