// Packed requests, which versions before `request-events.ts` stored in outboxes and sent in reports: two or three events of a
// request as one array of columns. Read only; delete this file once every outbox has delivered what those versions wrote.
import type { AuditEvent } from '../../shared/audit/event.ts';

/** Returns the events of a stored value: the value itself, or those of a packed request. */
export function readPacked(stored: unknown): unknown[] {
  if (typeof stored !== 'object' || stored === null || !('packed' in stored)) return [stored];
  const { subject, packed } = stored as { readonly subject?: string; readonly packed: readonly unknown[] };
  // JSON turned absent members into null.
  const [, tenant, request, action, requestClass, model, language, ...rest] = packed.map((one) => one ?? undefined);
  const [openedAt, openedModel, openedLanguage, routedAt, attempt, pool, agent, zone, why, outcome, ...end] = rest;
  const [at, status, reason, bytes, milliseconds, namesAgent, revision, audioSeconds] = end;
  const ids = idsOf(request as string);
  const who = { tenant, request, action, class: requestClass, subject };
  const events: { readonly type: AuditEvent['type']; readonly at: unknown; readonly [member: string]: unknown }[] = [
    { type: 'route', at: routedAt, tenant, request, attempt, pool, agent, zone, why, outcome },
    {
      ...{ type: 'inference.complete', at, ...who, model, language, status, reason, bytes, milliseconds },
      ...{ agent: namesAgent ? agent : undefined, revision, audioSeconds },
    },
  ];
  if (openedAt !== undefined) {
    events.unshift({ type: 'inference.attempt', at: openedAt, ...who, model: openedModel, language: openedLanguage });
  }
  return events.map((event) => definedOf({ v: 1, id: ids(event.at as number), producer: 'edge', ...event }));
}

const definedOf = (event: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(event).filter(([, value]) => value !== undefined));

/**
 * Ids of the events of a packed request: the time of each event and the random part of the request's id with its last
 * digit changed. Every read returns the same ids.
 */
function idsOf(request: string): (at: number) => string {
  let nth = 0;
  return (at) => {
    nth += 1;
    const time = Math.floor(at).toString(16).padStart(12, '0');
    const last = (Number.parseInt(request.slice(-1), 16) ^ nth).toString(16);
    return `${time.slice(0, 8)}-${time.slice(8)}-7${request.slice(15, -1)}${last}`;
  };
}
