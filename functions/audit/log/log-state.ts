// What the newest log of a region knows of itself. It changes by compare-and-swap only, and that swap is the moment at which entries are in the
// log: before it they are not, after it they are, whatever else fails.
import { z } from 'zod';
import { fromBase64, toBase64 } from '../../../shared/audit/base64.ts';
import { emptyRoot, HASH_BYTES, type Hash } from '../../../shared/audit/tree.ts';
import { limits } from '../../../shared/limits.ts';

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
  /** By outbox and its life: the number of its last event that is in the log. */
  upTo: z.record(z.string(), z.number().int()),
  /** By tenant: how many of its leaves are in the logs of this region. */
  tseq: z.record(z.string(), z.number().int()),
  /**
   * Which lives of outboxes have begun or ended (`lives.ts`): by counter when it began (of the functions: when it was heard
   * last), or, negative, when it ended, in ms since 1970. Lives of older edges never said that they began.
   */
  lives: z.record(z.string(), z.number().int()).optional(),
  /** By outbox and its life: after which number a hole was found, while it still may be filled. */
  late: z.record(z.string(), z.number().int()).optional(),
  /** The log that this one goes on from. */
  previous: head.extend({ origin: z.string() }).optional(),
  /** Its year is over: nothing is added any more. */
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

/** Whether it has no room for outboxes that it does not know. */
export const isFull = (state: LogState): boolean => encodeState(state).length > limits.auditStateBytes.value;
