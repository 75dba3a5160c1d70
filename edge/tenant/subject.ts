import { createHmac } from 'node:crypto';
import type { AuditEvent } from '../../shared/audit/event.ts';

/**
 * The event with a commitment in place of its subject: the record can tell that two requests were of the same caller,
 * and show a caller's own to whoever knows the name and the salt, but nobody can read a name out of it.
 */
export function hideSubject(event: AuditEvent, salt: Uint8Array): AuditEvent {
  if (!('subject' in event) || event.subject === undefined) return event;
  return { ...event, subject: `c1:${createHmac('sha256', salt).update(event.subject).digest('hex')}` };
}
