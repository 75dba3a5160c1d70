import type { AuditEvent } from '../../shared/audit/event.ts';
import { eventId } from '../../shared/audit/event-id.ts';

type Origin = 'v' | 'id' | 'at' | 'producer';
type Without<T, Keys extends PropertyKey> = T extends unknown ? Omit<T, Keys> : never;

type AnyDraft = Without<AuditEvent, Origin>;
type DraftOf<Type> = Extract<AnyDraft, { type: Type }>;
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
  const plain: AnyDraft = draft;
  const id = eventId(now, crypto.getRandomValues(new Uint8Array(10)));
  return { v: 1, id, at: now, producer: 'edge', ...plain };
}
