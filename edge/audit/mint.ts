import type { AuditEvent, EventDraft } from '../../shared/audit/event.ts';
import { eventId } from '../../shared/audit/event-id.ts';

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
export const newId = (now: number): string => eventId(now, randomBytes(10));

const drawn = new Uint8Array(4_000);
let left = 0;

/** Random bytes that nobody else gets: drawn for many events at once, since each drawing costs the same. */
function randomBytes(count: number): Uint8Array {
  if (left < count) {
    crypto.getRandomValues(drawn);
    left = drawn.length;
  }
  left -= count;
  return drawn.subarray(left, left + count);
}
