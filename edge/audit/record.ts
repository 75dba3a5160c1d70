import type { AuditEvent } from '../../shared/audit/event.ts';
import { limits } from '../../shared/limits.ts';
import { late, type Surroundings, within } from '../clock.ts';
import type { Bindings } from '../settings.ts';
import type { GateAnswer, GateStep } from '../tenant/gate.ts';
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

/** The step that carries events to a gate; more than the record may change with it. */
export type Carry = (events: readonly AuditEvent[]) => GateStep;
const carryAlone: Carry = (events) => ({ kind: 'record', events });

/** Steps that nobody waits for: they go along with the next call to their gate. Plain data only. */
const queues = new Map<string, GateStep[]>();

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

  /** A step at the owner's gate, and with it what waits for a call to go along with. */
  async step(owner: Owner, step: GateStep): Promise<GateAnswer> {
    const name = gateName(owner, this.#served);
    const along = [...takeBacklog(name, this.#surroundings.now()), ...(queues.get(name) ?? [])];
    queues.delete(name);
    const answered = Promise.resolve(this.#gates.getByName(name).apply([...along, step]));
    if (along.length > 0) this.#waitUntil(this.#see(name, along, answered));
    return (await answered).at(-1) as GateAnswer;
  }

  /**
   * The same without an answer, and without a call of its own when another goes to the same gate within
   * `limits.gateLingerMs`: a busy tenant costs one call for each request and not two.
   */
  defer(owner: Owner, step: GateStep): void {
    const name = gateName(owner, this.#served);
    const queue = queues.get(name) ?? [];
    queues.set(name, [...queue, step]);
    this.#waitUntil(this.#sendLeftover(owner, step, queue.length >= limits.gateSteps.value));
  }

  async #sendLeftover(owner: Owner, step: GateStep, atOnce: boolean): Promise<void> {
    if (!atOnce) await this.#surroundings.after(limits.gateLingerMs.value).rings;
    const name = gateName(owner, this.#served);
    const queue = queues.get(name) ?? [];
    if (!queue.includes(step)) return;
    queues.set(
      name,
      queue.filter((one) => one !== step),
    );
    await this.record(owner, step.events, (events) => ({ ...step, events }) as GateStep);
  }

  /** What went along with a call that failed is kept as what failed by itself is. */
  async #see(name: string, along: readonly GateStep[], answered: Promise<unknown>): Promise<void> {
    const seen = await within(answered, limits.auditWaitMs.value, this.#surroundings).catch(() => late);
    const events = along.flatMap((step) => [...step.events]);
    if (seen === late) keep(name, events);
  }

  /** Delivers within `limits.auditWaitMs`, or keeps for later. True when they are durable. */
  async record(owner: Owner, events: readonly AuditEvent[], carry: Carry = carryAlone): Promise<boolean> {
    try {
      const sent = this.step(owner, carry(events));
      if ((await within(sent, limits.auditWaitMs.value, this.#surroundings)) !== late) return true;
    } catch {
      // The cause is the platform's; what matters is that nobody has the events.
    }
    this.keep(owner, events);
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

/** The backlog as a step that writes it; none when there is nothing to write. */
function takeBacklog(name: string, now: number): GateStep[] {
  const backlog = backlogs.get(name);
  if (!backlog) return [];
  backlogs.delete(name);
  const gap = backlog.lost > 0 ? [mint({ type: 'gap', lost: backlog.lost, from: 0, to: 0 }, now)] : [];
  return [{ kind: 'record', events: [...gap, ...backlog.events] }];
}
