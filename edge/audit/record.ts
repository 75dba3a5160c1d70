import type { AuditEvent } from '../../shared/audit/event.ts';
import { limits } from '../../shared/limits.ts';
import { late, type Surroundings, within } from '../clock.ts';
import type { Bindings } from '../settings.ts';
import { type AuditDraft, mint } from './mint.ts';

/** Whose gate: a tenant, and the zones it lives in. */
export interface Owner {
  readonly tenant: string;
  readonly zones: readonly string[];
}

/** Callers that no token identified. `@` keeps the name apart from every tenant's. */
export const anonymousOwner: Owner = { tenant: '@anonymous', zones: [] };

/** One gate per tenant, in the first of its zones that is served here. */
export function gateName({ tenant, zones }: Owner, served: readonly string[]): string {
  return `${tenant}/${zones.find((zone) => served.includes(zone)) ?? served[0]}`;
}

type Gate = ReturnType<Bindings['GATE']['getByName']>;

/** Hands events to a gate, together with whatever else it should do in the same step. */
export type Send = (gate: Gate, events: readonly AuditEvent[]) => Promise<unknown>;
const sendAlone: Send = (gate, events) => gate.record(events);

interface Backlog {
  readonly events: AuditEvent[];
  lost: number;
}

/** Events whose gate could not be reached, kept by this isolate for the next chance. Plain data only. */
const backlogs = new Map<string, Backlog>();

/** How many refusals of unknown callers were recorded in the current second, and how many were only counted. */
const anonymous = { second: 0, recorded: 0, suppressed: 0 };

/**
 * The way of audit events into a gate's outbox, for one request. What could not be delivered is kept for the next
 * request to the same gate, so delivery is at least once: an event may appear twice, with the same id.
 */
export class Recorder {
  readonly #gates: Bindings['GATE'];
  readonly #served: readonly string[];
  readonly #surroundings: Surroundings;
  readonly #waitUntil: (work: Promise<unknown>) => void;

  constructor(
    gates: Bindings['GATE'],
    served: readonly string[],
    surroundings: Surroundings,
    waitUntil: (work: Promise<unknown>) => void,
  ) {
    this.#gates = gates;
    this.#served = served;
    this.#surroundings = surroundings;
    this.#waitUntil = waitUntil;
  }

  mint(draft: AuditDraft): AuditEvent {
    return mint(draft, this.#surroundings.now());
  }

  gateOf(owner: Owner): Gate {
    return this.#gates.getByName(gateName(owner, this.#served));
  }

  /** Delivers within `limits.auditWaitMs`, or keeps for later. True when they are durable. */
  async record(owner: Owner, events: readonly AuditEvent[], send: Send = sendAlone): Promise<boolean> {
    const name = gateName(owner, this.#served);
    const all = [...takeBacklog(name, this.#surroundings.now()), ...events];
    try {
      const sent = send(this.#gates.getByName(name), all);
      if ((await within(sent, limits.auditWaitMs.value, this.#surroundings)) !== late) return true;
    } catch {
      // The cause is the platform's; what matters is that nobody has the events.
    }
    keep(name, all);
    return false;
  }

  /** The same without waiting for it. */
  later(owner: Owner, events: readonly AuditEvent[]): void {
    this.#waitUntil(this.record(owner, events));
  }

  /** Keeps events that travelled with a call that failed. */
  keep(owner: Owner, events: readonly AuditEvent[]): void {
    keep(gateName(owner, this.#served), events);
  }

  /** A refusal before anybody was known. A flood is counted, not written one by one. */
  deniedUnknown(request: string, action: string, reason: string, detail: string | undefined): void {
    const second = Math.floor(this.#surroundings.now() / 1_000);
    if (anonymous.second !== second) Object.assign(anonymous, { second, recorded: 0 });
    if (anonymous.recorded >= limits.anonymousDenialsPerSecond.value) {
      anonymous.suppressed += 1;
      return;
    }
    const { suppressed } = anonymous;
    Object.assign(anonymous, { recorded: anonymous.recorded + 1, suppressed: 0 });
    const event = this.mint({
      type: 'inference.denied',
      request,
      action,
      reason,
      ...(detail !== undefined && { detail }),
      ...(suppressed > 0 && { suppressed }),
    });
    this.later(anonymousOwner, [event]);
  }
}

function keep(name: string, events: readonly AuditEvent[]): void {
  const backlog = backlogs.get(name) ?? { events: [], lost: 0 };
  backlog.events.push(...events);
  const over = backlog.events.length - limits.auditBacklogEvents.value;
  if (over > 0) {
    backlog.events.splice(0, over);
    backlog.lost += over;
  }
  backlogs.set(name, backlog);
}

function takeBacklog(name: string, now: number): AuditEvent[] {
  const backlog = backlogs.get(name);
  if (!backlog) return [];
  backlogs.delete(name);
  if (backlog.lost === 0) return backlog.events;
  return [mint({ type: 'gap', lost: backlog.lost, from: 0, to: 0 }, now), ...backlog.events];
}
