// A leaf: an entry of the log. Members that identify no person and no request are in the clear, all others
// are commitments; an unknown member is committed to.
import { z } from 'zod';
import { canonicalJson } from './canonical-json.ts';
import { commit, disclose, isForbiddenName } from './commitment.ts';
import { withDecoys } from './decoy.ts';
import { isPlain } from './plain-members.ts';

/** A reported event: a member of `event.ts`, or of another version of it. */
export const reportedEvent = z
  .looseObject({
    v: z.literal(1),
    id: z.uuid(),
    type: z.string().min(1).max(64),
    at: z.number().int(),
    producer: z.string().min(1).max(128),
    tenant: z.string().max(128).optional(),
    request: z.string().max(128).optional(),
  })
  .refine((event) => !Object.keys(event).some(isForbiddenName), 'a member has a name that nothing can be hidden under');
export type ReportedEvent = z.infer<typeof reportedEvent>;

/** A leaf before it has an index: all members that the producer knows. */
export const leafDraft = z.looseObject({
  v: z.literal(1),
  id: z.uuid(),
  type: z.string(),
  /** Reporter: the edge, or an agent. */
  by: z.string(),
  /** Tenant and request. */
  tn: z.string().optional(),
  req: z.string().optional(),
  /** Times in epoch ms: at the reporter, and in the outbox. */
  t: z.object({ origin: z.number(), edge: z.number() }),
  /** Commitments by member name. */
  sd: z.record(z.string(), z.string()).optional(),
  /** Retention class of its hidden values (`retention.ts`). */
  ret: z.string().optional(),
});
export type LeafDraft = z.infer<typeof leafDraft>;

export const leaf = z.looseObject({
  v: z.literal(1),
  id: z.uuid(),
  type: z.string(),
  by: z.string(),
  /** Outbox, its epoch, and the event's number. */
  p: z.string(),
  ep: z.string(),
  pseq: z.number().int(),
  tn: z.string().optional(),
  /** Number of the tenant's leaf in this region, from 1 without gaps. */
  tseq: z.number().int().optional(),
  req: z.string().optional(),
  t: z.object({ origin: z.number(), edge: z.number(), seq: z.number() }),
  sd: z.record(z.string(), z.string()).optional(),
});
export type Leaf = z.infer<typeof leaf>;

/** Returns an event's leaf and its hidden members, `undefined` when it has none. */
export async function draftLeaf(
  event: ReportedEvent,
  written: number,
  newRecordKey: () => Uint8Array,
): Promise<{ draft: LeafDraft; disclosures: Record<string, string> | undefined }> {
  const { v, id, type, at, producer, tenant, request, ...rest } = event;
  const members = Object.entries(rest).filter(([, value]) => value !== undefined);
  const plain = Object.fromEntries(members.filter(([name, value]) => isPlain(type, name) && isShort(value)));
  const hidden = withDecoys(type, Object.fromEntries(members.filter(([name]) => !Object.hasOwn(plain, name))));
  const disclosures = Object.keys(hidden).length > 0 ? await disclose(newRecordKey(), hidden) : undefined;
  const sd = disclosures && Object.fromEntries(Object.entries(disclosures).map(([name, text]) => [name, commit(text)]));
  const draft: LeafDraft = {
    ...plain,
    ...{ v, id, type, by: producer, t: { origin: at, edge: written } },
    ...(tenant !== undefined && { tn: tenant }),
    ...(request !== undefined && { req: request }),
    ...(sd && { sd }),
  };
  return { draft, disclosures };
}

/** Reports a name, code or number; longer values are free text. */
const isShort = (value: unknown): boolean =>
  typeof value === 'number' || typeof value === 'boolean' || (typeof value === 'string' && value.length <= 256);

export const encodeLeaf = (value: Leaf): Uint8Array => new TextEncoder().encode(canonicalJson(value));

/** Parses an entry; `undefined` for one that this version would not write. */
export function readLeaf(entry: Uint8Array): Leaf | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(entry);
    const parsed = leaf.safeParse(JSON.parse(text));
    return parsed.success && canonicalJson(parsed.data) === text ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}
