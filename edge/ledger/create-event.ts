import type { AuditEvent, EventDraft } from '../../shared/audit/event.ts';

export type AnyDraft = EventDraft;
export type DraftOf<Type> = Extract<AnyDraft, { type: Type }>;
/** A value with an event type. */
export type Typed = { readonly type: AuditEvent['type'] };

/**
 * An audit event before it has an id and a time, with exactly the members of its type. Spread members are
 * compared as well; otherwise one that the schema lacks would travel unnoticed until a reader drops it.
 */
export type AuditDraft<D extends Typed> = D &
  DraftOf<D['type']> &
  Record<Exclude<keyof D, keyof DraftOf<D['type']>>, never>;

/** Creates an audit event of the edge. `now` is in epoch ms. */
export function createEvent<D extends Typed>(draft: AuditDraft<D>, now: number): AuditEvent {
  return createDraft(draft, now);
}

/** Creates an event from a draft whose members were already compared. */
export const createDraft = (draft: AnyDraft, at: number): AuditEvent => ({
  ...{ v: 1, id: newId(at), at, producer: 'edge' },
  ...draft,
});

/** Returns a time-ordered unique id for `now`, epoch ms. */
export function newId(now: number): string {
  if (now !== last.now) last = { now, time: timeOf(now) };
  // UUID versions 4 and 7 have their random bits at the same positions.
  return `${last.time}-7${crypto.randomUUID().slice(15)}`;
}

/** Cache: many requests begin in the same millisecond. */
let last = { now: -1, time: '' };

function timeOf(now: number): string {
  const time = Math.floor(now).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}`;
}
