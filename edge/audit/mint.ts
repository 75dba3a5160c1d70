import type { AuditEvent } from '../../shared/audit/event.ts';
import { eventId } from '../../shared/audit/event-id.ts';

type Origin = 'v' | 'id' | 'at' | 'producer';
type Without<T, Keys extends PropertyKey> = T extends unknown ? Omit<T, Keys> : never;

/** An audit event before it has an id and a time. */
export type AuditDraft = Without<AuditEvent, Origin>;

/** An audit event of the edge. `now` is in ms since 1970. */
export function mint(draft: AuditDraft, now: number): AuditEvent {
  const id = eventId(now, crypto.getRandomValues(new Uint8Array(10)));
  return { v: 1, id, at: now, producer: 'edge', ...draft } as AuditEvent;
}
