// Events of producers about themselves and about missing events.
import { z } from 'zod';
import { caller, origin, request } from './event-parts.ts';

export const producerEvents = [
  /**
   * Something is being reported again: the first event of a life, and the first after a rest. `previous`: the life before, if
   * that ended without a word, and the number of its last event that is known to be safe.
   */
  z.object({
    ...origin,
    type: z.literal('producer.open'),
    previous: z.string().optional(),
    previousLast: z.number().int().optional(),
  }),
  /** Nothing is being reported any more: whatever has a number up to `last`, its own, is all there is, until the next `producer.open`. */
  z.object({ ...origin, type: z.literal('producer.close'), last: z.number().int() }),
  /** Events that were dropped before the log had them. */
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
    /** Time of the last sign of its worker, ms since 1970. */
    heard: z.number().int().optional(),
  }),
  /** A request of an earlier edge, served without its record because the token allowed that in an emergency. */
  z.object({
    ...origin,
    ...request,
    ...caller,
    type: z.literal('breakglass'),
    /** The record that was missing. */
    stage: z.enum(['attempt', 'complete']),
    /** Reason of the failed record. */
    reason: z.string(),
    /** Epoch ms. */
    since: z.number().int(),
  }),
] as const;
