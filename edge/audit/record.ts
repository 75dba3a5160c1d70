import type { AuditEvent } from '../../shared/audit/event.ts';
import { limits } from '../../shared/limits.ts';
import { late, type Surroundings, within } from '../clock.ts';
import type { Bindings } from '../settings.ts';
import type { GateAnswer, GateStep } from '../tenant/gate.ts';
import { Backlog } from './backlog.ts';
import { type AuditDraft, mint, type Typed } from './mint.ts';

/** Whose gate: a tenant, and the zones it lives in. */
export interface Owner {
  readonly tenant: string;
  readonly zones: readonly string[];
}

/** Callers that no token identified. `@` keeps the name apart from every tenant's. */
export const anonymousOwner: Owner = { tenant: '@anonymous', zones: [] };

/** One gate per tenant, in the first zone served here that is one of its own: the order in a token changes nothing. */
export function gateName({ tenant, zones }: Owner, served: readonly string[]): string {
  return `${tenant}/${served.find((zone) => zones.includes(zone)) ?? served[0]}`;
}

/** Steps that nobody waits for: they go along with the next call to their gate. Plain data only. */
const queues = new Map<string, GateStep[]>();

/** Steps whose gate could not be reached, kept by this isolate for the next chance. */
const backlog = new Backlog();

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

  mint<D extends Typed>(draft: AuditDraft<D>): AuditEvent {
    return mint<D>(draft, this.#surroundings.now());
  }

  /** A step at the owner's gate, and with it what waits for a call to go along with. */
  async step(owner: Owner, step: GateStep): Promise<GateAnswer> {
    const name = gateName(owner, this.#served);
    const along = [
      ...takeBacklog(name, owner === anonymousOwner, this.#surroundings.now()),
      ...(queues.get(name) ?? []),
    ];
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
    await this.record(owner, step);
  }

  /** What went along with a call that failed is kept as what failed by itself is. */
  async #see(name: string, along: readonly GateStep[], answered: Promise<unknown>): Promise<void> {
    const seen = await within(answered, limits.auditWaitMs.value, this.#surroundings).catch(() => late);
    if (seen === late) backlog.keep(name, along);
  }

  /**
   * Delivers a step within `limits.auditWaitMs`, or keeps `otherwise` for later: the same step, unless it has to say
   * something else when it was not heard in time. True when it was delivered.
   */
  async record(owner: Owner, step: GateStep, otherwise: GateStep = step): Promise<boolean> {
    try {
      const sent = this.step(owner, step);
      if ((await within(sent, limits.auditWaitMs.value, this.#surroundings)) !== late) return true;
    } catch {
      // The cause is the platform's; what matters is that nobody has the step.
    }
    this.keep(owner, otherwise);
    return false;
  }

  /** Delivers events that concern no place, without being waited for. */
  later(owner: Owner, events: readonly AuditEvent[]): void {
    this.#waitUntil(this.record(owner, { kind: 'record', events }));
  }

  /** Keeps a step whose call failed. */
  keep(owner: Owner, step: GateStep): void {
    backlog.keep(gateName(owner, this.#served), [step]);
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

/** The backlog as steps that come first; none when there is nothing to write. */
function takeBacklog(name: string, anonymous: boolean, now: number): GateStep[] {
  const kept = backlog.take(name);
  // Losses of gates that were forgotten stand where those of unknown callers do, since nobody else's record may tell.
  const lost = (kept?.lost ?? 0) + (anonymous ? backlog.takeForgotten() : 0);
  const gap = lost > 0 ? [mint({ type: 'gap', lost, from: 0, to: 0 }, now)] : [];
  return [...(gap.length > 0 ? [{ kind: 'record', events: gap } as const] : []), ...(kept?.steps ?? [])];
}
