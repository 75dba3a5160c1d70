// State of the newest log of a zone. A compare-and-swap of it is the commit: before it the entries are not in
// the log, after it they are.
import { z } from 'zod';
import { emptyRoot, HASH_BYTES, type Hash } from '../../../shared/audit/tree.ts';
import { fromBase64, toBase64 } from '../../../shared/base64.ts';
import { MiB } from '../../../shared/bytes.ts';

/**
 * State of one log: about 10,000 outboxes and tenants. Beyond it new outboxes wait, and a log line reports
 * it.
 */
export const LOG_STATE_BYTES = 1 * MiB;

const hash = z.string().transform((text, context): Hash => {
  const bytes = fromBase64(text);
  if (bytes?.length === HASH_BYTES) return bytes;
  context.addIssue('is no hash');
  return z.NEVER;
});
const head = z.object({ size: z.number().int(), root: hash });

const logState = z.object({
  v: z.literal(1),
  origin: z.string(),
  year: z.number().int(),
  size: z.number().int(),
  root: hash,
  /** The log before the last commit: what is needed to finish that one. */
  before: head,
  /** Time of the last entry, ms since 1970. */
  last: z.number().int(),
  /** By outbox and life: number of its last logged event. */
  upTo: z.record(z.string(), z.number().int()),
  /** By tenant: number of its leaves in the logs of this zone. */
  tseq: z.record(z.string(), z.number().int()),
  /**
   * Lives of outboxes (`lives.ts`) by counter: time of the begin (of the functions: of the last event) or,
   * negative, of the end, in ms since 1970.
   */
  lives: z.record(z.string(), z.number().int()).optional(),
  /** By outbox and life: number before a gap that may still be filled. */
  late: z.record(z.string(), z.number().int()).optional(),
  /** The log that this one goes on from. */
  previous: head.extend({ origin: z.string() }).optional(),
  /** The year is over; no entry is added. */
  closed: z.boolean().optional(),
});
export type LogState = z.infer<typeof logState>;

export const readState = (bytes: Uint8Array): LogState => logState.parse(JSON.parse(new TextDecoder().decode(bytes)));

export function encodeState(state: LogState): Uint8Array {
  const plain = (one: { size: number; root: Hash }) => ({ ...one, root: toBase64(one.root) });
  const { before, previous } = state;
  return new TextEncoder().encode(
    JSON.stringify({ ...plain(state), before: plain(before), ...(previous && { previous: plain(previous) }) }),
  );
}

/** A log without entries, which goes on with the counts of the one before. */
export function freshState(origin: string, year: number, before: LogState | undefined): LogState {
  return {
    v: 1,
    origin,
    year,
    size: 0,
    root: emptyRoot,
    before: { size: 0, root: emptyRoot },
    last: before?.last ?? 0,
    upTo: before?.upTo ?? {},
    tseq: before?.tseq ?? {},
    ...(before?.lives && { lives: before.lives }),
    ...(before?.late && { late: before.late }),
    ...(before && { previous: { origin: before.origin, size: before.size, root: before.root } }),
  };
}

/** Under which name an outbox and its life are counted. */
export const counterOf = (producer: string, epoch: string): string => `${producer} ${epoch}`;

/** Reports whether the state has no capacity for new outboxes. */
export const isFull = (state: LogState): boolean => encodeState(state).length > LOG_STATE_BYTES;
