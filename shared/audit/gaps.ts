// Gaps of an audit log: numbers of an outbox that never reached it, and work that has no end. A gap fails
// health and verification until an operator accepts it, with a reason, in an entry of the log (`gap.accept`).
//
//   GET  /api/audit/{zone}/gaps                          → 200 gapList          (operators)
//   POST /api/audit/{zone}/gaps/accept   newAcceptance   → 200 gap, 404 gap_unknown
import { z } from 'zod';
import { readLoss } from './next-numbers.ts';
import { plainText } from './plain-text.ts';
import { AUDIT_REASON_CHARACTERS, commitment } from './privacy.ts';

/**
 * Age at which an upload or document without an end counts as a gap: two days, twice the time after which a
 * job without an agent is given up.
 */
export const AUDIT_UNENDED_MS = 172_800_000;

const gapPlace = z
  .string()
  .regex(/^\d{4}-(0|[1-9]\d{0,14})$/)
  .describe('Year and index of the entry that shows the gap: 2026-731');

const missing = {
  outbox: z.string().describe('Producer of the events'),
  epoch: z.string().describe('Epoch of that producer'),
  from: z.number().int().describe('First missing number; for work without an end, the number of its start'),
  to: z.number().int().optional().describe('Last missing number; absent if the producer ended without closing'),
};

export const gap = z.object({
  gap: gapPlace,
  ...missing,
  request: z.string().optional().describe('Upload or document without an end'),
  at: z.number().int().describe('Time of the entry, ms since 1970'),
  accepted: z.object({ at: z.number().int() }).optional().describe('When an operator accepted it, ms since 1970'),
});
export type Gap = z.infer<typeof gap>;
export const gapList = z.object({ data: z.array(gap) });

export const newAcceptance = z.strictObject({
  gap: gapPlace,
  reason: plainText(AUDIT_REASON_CHARACTERS),
  by: commitment.optional(),
  request: z.string().max(128).optional(),
});

type Leaf = Readonly<Record<string, unknown>>;
export type Missing = z.infer<z.ZodObject<typeof missing>>;

/** Returns the gap that the log's own entry reports. */
export function gapIn(leaf: Leaf): Missing | undefined {
  const loss = readLoss(leaf);
  if (!loss || typeof loss.outbox !== 'string') return undefined;
  const { outbox, epoch, to } = loss;
  return { outbox, epoch, from: Number(leaf.from), ...(to !== undefined && { to }) };
}

/** Functions report for the accepting operator; an outbox of the edge cannot accept its own gap. */
const isOfFunctions = (leaf: Leaf): boolean => typeof leaf.p === 'string' && leaf.p.startsWith('functions/');

export function acceptanceIn(leaf: Leaf): (Missing & { readonly gap: string }) | undefined {
  if (leaf.type !== 'gap.accept' || !isOfFunctions(leaf)) return undefined;
  return z.object({ gap: gapPlace, ...missing }).safeParse(leaf).data;
}

export const isSameGap = (a: Missing, b: Missing): boolean =>
  a.outbox === b.outbox && a.epoch === b.epoch && a.from === b.from && a.to === b.to;

const ends: readonly unknown[] = ['inference.complete', 'inference.denied', 'inference.unknown'];

/** Returns begin or end of an upload or a document, as the functions report it. */
export function workIn(leaf: Leaf): { readonly request: string; readonly ends: boolean } | undefined {
  const { type, req } = leaf;
  if (!isOfFunctions(leaf) || typeof req !== 'string') return undefined;
  if (type !== 'inference.attempt' && !ends.includes(type)) return undefined;
  return { request: req, ends: type !== 'inference.attempt' };
}

/** Reports work that should have ended by now. */
export const isOverdue = (begun: number, now: number): boolean => now - begun > AUDIT_UNENDED_MS;
