import type { AuditEvent, EventDraft } from '../../shared/audit/event.ts';

export type AnyDraft = EventDraft;
export type DraftOf<Type> = Extract<AnyDraft, { type: Type }>;
/** Anything that names a type of event. */
export type Typed = { readonly type: AuditEvent['type'] };

/**
 * An audit event before it has an id and a time: the members of its type and no others. Members that come from a spread
 * are compared, too; otherwise one that the schema lacks would travel along unseen until a reader drops it.
 */
export type AuditDraft<D extends Typed> = D &
  DraftOf<D['type']> &
  Record<Exclude<keyof D, keyof DraftOf<D['type']>>, never>;

/** An audit event of the edge. `now` is in ms since 1970. */
export function mint<D extends Typed>(draft: AuditDraft<D>, now: number): AuditEvent {
  return mintDraft(draft, now);
}

/** The same for a draft whose members were compared when it was made. */
export const mintDraft = (draft: AnyDraft, at: number): AuditEvent => ({
  ...{ v: 1, id: newId(at), at, producer: 'edge' },
  ...draft,
});

/** An id for whatever is made at `now`, ms since 1970: time-ordered and unique. */
export function newId(now: number): string {
  if (now !== last.now) last = { now, time: timeOf(now) };
  // What is random in a UUID of version 4 stands where it does in one of version 7.
  return `${last.time}-7${crypto.randomUUID().slice(15)}`;
}

/** Many requests begin in the same millisecond. */
let last = { now: -1, time: '' };

function timeOf(now: number): string {
  const time = Math.floor(now).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}`;
}
