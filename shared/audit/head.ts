// The log of checkpoints: one log across regions, whose entries say how far the log of each region was, and nothing else.
// It is a log as all others are, under a name that no region has.
import { z } from 'zod';
import type { Leaf } from './leaf.ts';

/** In the place of a zone. */
export const HEADS = 'heads';
export const HEAD_TYPE = 'log.head';
/** Whoever records: heads have one life, whichever process writes them. */
export const HEAD_EPOCH = 'heads';

const PRODUCER = 'region/';
export const headProducer = (zone: string): string => `${PRODUCER}${zone}`;

/** A checkpoint of a region's log, without its signatures: those are in that log for as long as this one is. */
export const head = z.object({ log: z.string(), size: z.number().int().min(1), root: z.base64().length(44) });
export type Head = z.infer<typeof head>;

/** Of which region a leaf is the head, and the head; `undefined` of any other leaf. */
export function readHead(leaf: Pick<Leaf, 'type' | 'p'>): { readonly zone: string; readonly head: Head } | undefined {
  if (leaf.type !== HEAD_TYPE || !leaf.p.startsWith(PRODUCER)) return undefined;
  const parsed = head.safeParse(leaf);
  return parsed.success ? { zone: leaf.p.slice(PRODUCER.length), head: parsed.data } : undefined;
}
