import type { AuditEvent } from '../../shared/audit/event.ts';
import { limits } from '../../shared/limits.ts';
import { type AnyDraft, type DraftOf, mintDraft } from './mint.ts';

/** Who asks for what: the same in the events that begin and end a request. */
export type Who = Omit<DraftOf<'inference.attempt'>, 'type'>;

/** A request that has begun, while nobody was told of its attempt. */
export interface Opening {
  readonly who: Who;
  /** ms since 1970. */
  readonly at: number;
}

/** What happened, before it is an event. */
export interface Noted<Draft extends AnyDraft = AnyDraft> {
  readonly draft: Draft;
  /** ms since 1970. */
  readonly at: number;
}

/** How a request went that began without asking the gate. */
export interface Told {
  readonly notes: readonly Noted[];
  readonly end: Noted<DraftOf<'inference.complete'>>;
}

/** Two or three events of one request as one text. */
export interface PackedRequest {
  readonly count: number;
  readonly json: string;
}

export const attemptOf = ({ who, at }: Opening): AuditEvent => mintDraft({ type: 'inference.attempt', ...who }, at);

/** The events themselves. `opening`: the attempt, where nobody was told of it. */
export function unpacked(opening: Opening | undefined, { notes, end }: Told): AuditEvent[] {
  const rest = [...notes, end].map(({ draft, at }) => mintDraft(draft, at));
  return opening ? [attemptOf(opening), ...rest] : rest;
}

const VERSION = 1;
const UUID_LENGTH = 36;

/**
 * The same as one text a third as long, which costs a fourth to make and to write: a request that one agent was asked
 * for has events that mostly say the same. `undefined` for any other. Its subject stands where events have theirs, so
 * that it is hidden in the same way. `readPacked` knows the places.
 */
export function packRequest(opening: Opening | undefined, { notes, end }: Told): PackedRequest | undefined {
  const [note] = notes;
  const { draft, at } = end;
  if (notes.length !== 1 || note?.draft.type !== 'route' || draft.request.length !== UUID_LENGTH) return undefined;
  const { draft: route } = note;
  if (draft.agent !== undefined && draft.agent !== route.agent) return undefined;
  const { subject, tenant, request, action, class: requestClass, model, language } = draft;
  const { attempt, pool, agent, zone, why, outcome } = route;
  const { status, reason, bytes, milliseconds, revision, audioSeconds } = draft;
  const who = opening?.who;
  // biome-ignore format: one line for each event, as `readPacked` reads them.
  const packed = [
    VERSION, tenant, request, action, requestClass, model, language,
    opening?.at, who?.model, who?.language,
    note.at, attempt, pool, agent, zone, why, outcome,
    at, status, reason, bytes, milliseconds, draft.agent !== undefined, revision, audioSeconds,
  ];
  const json = JSON.stringify({ subject, packed });
  // A character is at most three bytes; the names of members, which are not in it, are less than a fourth.
  return json.length * 4 <= limits.auditEventBytes.value ? { count: opening ? 3 : 2, json } : undefined;
}

/** What stands in an outbox: an event, or a packed request, which is taken apart. */
export function readPacked(stored: unknown): unknown[] {
  if (typeof stored !== 'object' || stored === null || !('packed' in stored)) return [stored];
  const { subject, packed } = stored as { readonly subject?: string; readonly packed: readonly unknown[] };
  // Absent members became null in JSON.
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
 * Ids of the events of a request, the same whenever they are read: the time of each, and what is random in the request's
 * own, changed in its last digit. So they are as unique as that is, and differ from it and from each other.
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
