import type { AuditEvent } from '../../shared/audit/event.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { isStorageFull, refuseFull } from '../../shared/storage-full.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { late, type Runtime, within } from '../clock.ts';
import { homeZone } from '../home-zone.ts';
import type { Bindings } from '../settings.ts';
import { Backlog } from './backlog.ts';
import { type AuditDraft, createEvent, type Typed } from './create-event.ts';
import type { GateAnswer, GateStep, TakeStep } from './gate-step.ts';
import { logFull } from './log-full.ts';
import type { Quota } from './quota.ts';
import { type Attempt, createRecordEvents, type RequestRecord } from './request-events.ts';
import { Reserves } from './reserves.ts';

/** Steps that wait in an isolate for a call to their gate; the next one triggers a call. */
export const GATE_STEPS_MAX = 64;
/** Time such a step waits for another call; a lease returns that much later, which no caller feels. */
export const GATE_DELAY_MS = 20;
/**
 * Time the events of pre-leased requests stay in the isolate only, lost if it vanishes: half the cost of 20
 * ms.
 */
export const GATE_REPORT_MS = 50;
/** Refusals of unauthenticated callers recorded one by one; the next record counts the rest. */
export const ANONYMOUS_DENIALS_PER_S = 10;

/** The owner of a gate: a tenant, and its zones. */
export interface Owner {
  readonly tenant: string;
  readonly zones: readonly string[];
}

export interface RecorderContext {
  readonly gates: Bindings['GATE'];
  /** Residency zones served here. */
  readonly zones: readonly string[];
  /** AUDIT_WAIT_MS of the settings, in milliseconds. */
  readonly waitMs: number;
  readonly runtime: Runtime;
  readonly waitUntil: (work: Promise<unknown>) => void;
}

/** Owner of requests without an identified caller. `@` keeps the name apart from every tenant's. */
export const anonymousOwner: Owner = { tenant: '@anonymous', zones: [] };

/** Returns the name of a tenant's Gate. */
export const gateName = (owner: Owner, served: readonly string[]): string =>
  `${owner.tenant}/${homeZone(owner, served)}`;

/** Deferred steps, sent with the next call to their Gate. Plain data only. */
const queues = new Map<string, GateStep[]>();

/** Slots that this isolate has leased in advance. */
const reserves = new Reserves();

/** Steps for unreachable Gates, buffered by this isolate for a retry. */
const backlog = new Backlog();

/**
 * Time of the last failure with a full disk, by name of the gate, epoch ms. The object may be reset then, and its next
 * errors do not say why: for `FULL_MS` they count as the same.
 */
const fullGates = new Map<string, number>();
const FULL_MS = 30_000;
const isRecent = (fullAt: number | undefined, now: number): boolean => fullAt !== undefined && now - fullAt <= FULL_MS;

/** Counts of recorded refusals of unknown callers in the current second, and of suppressed ones. */
const anonymous = { second: 0, recorded: 0, suppressed: 0 };

/**
 * Leases slots and appends audit events at Gates for one request: `append` is durable before it returns, `appendEventually`
 * buffers. The isolate repeats undelivered steps with the next call to their Gate, so delivery is at least once: an event may
 * appear twice, with the same id.
 */
export class Recorder {
  readonly #gates: Bindings['GATE'];
  readonly #served: readonly string[];
  readonly #runtime: Runtime;
  readonly #waitUntil: (work: Promise<unknown>) => void;
  /** Timeout of a step at its Gate, ms. */
  readonly #waitMs: number;
  #named: { readonly owner: Owner; readonly name: string } | undefined;

  constructor({ gates, zones, waitMs, runtime, waitUntil }: RecorderContext) {
    this.#gates = gates;
    this.#served = zones;
    this.#waitMs = waitMs;
    this.#runtime = runtime;
    this.#waitUntil = waitUntil;
  }

  /**
   * Returns the refusal for an event that the Gate of `owner` did not record, with the cause if the Gate
   * named it.
   */
  refusal(owner: Owner, detail: string): Refusal {
    const full = isRecent(fullGates.get(this.#nameOf(owner)), this.#runtime.now());
    return full ? refuseFull('edge', detail) : refuse('audit_unavailable', undefined, detail);
  }

  /** Caches the Gate's name of the request's owner. */
  #nameOf(owner: Owner): string {
    if (this.#named?.owner !== owner) this.#named = { owner, name: gateName(owner, this.#served) };
    return this.#named.name;
  }

  mint<D extends Typed>(draft: AuditDraft<D>): AuditEvent {
    return createEvent<D>(draft, this.#runtime.now());
  }

  /** Sends a step to the owner's Gate, together with buffered ones, and returns its answer. */
  async send(owner: Owner, step: GateStep): Promise<GateAnswer> {
    const name = this.#nameOf(owner);
    const now = this.#runtime.now();
    const before = [...takeBacklog(name, owner === anonymousOwner, now), ...(queues.get(name) ?? [])];
    queues.delete(name);
    // A request that takes a slot from the Gate also requests a reserve.
    const report = reserves.report(name, now, step.kind === 'take' && step.mode === 'buffered');
    const after = report ? [report] : [];
    const steps = [...before, step, ...after];
    const applied = Promise.resolve(this.#gates.getByName(name).apply(steps)).catch((error: unknown) => {
      if (isStorageFull(error)) {
        noteFull(name, this.#runtime.now());
        logFull(name);
      }
      throw error;
    });
    const answered = applied.then((answers) => {
      fullGates.delete(name);
      if (before.length > 0) backlog.delivered(name);
      this.#onAnswers(name, steps, answers);
      return answers;
    });
    if (steps.length > 1) this.#waitUntil(this.#bufferUnanswered(name, [...before, ...after], answered));
    return (await answered)[before.length] as GateAnswer;
  }

  #onAnswers(name: string, steps: readonly GateStep[], answers: readonly GateAnswer[]): void {
    for (const [at, step] of steps.entries()) {
      const answer = answers[at];
      // The quota of a token with its own allowance is not that of its tenant.
      const ofTenant = step.kind !== 'take' || !step.ask.share;
      if (answer?.quota && ofTenant) reserves.noteQuota(name, answer.quota);
      if (step.kind !== 'report') continue;
      reserves.onAnswer(name, step, answer?.ok ? answer.value : undefined, this.#runtime.now());
    }
  }

  /** Begins a request with a slot of the reserve and reports its attempt soon. Returns false without a free slot. */
  enter(owner: Owner, id: string, attempt: Attempt, allowance: Claims['allowance']): boolean {
    const name = this.#nameOf(owner);
    if (!reserves.enter(name, { id, attempt, allowance }, attempt.at)) return false;
    this.#reportSoon(owner, name, attempt.at);
    return true;
  }

  /** Returns what is left of the allowance after `enter`, as far as this isolate knows. */
  quota(owner: Owner): Quota | undefined {
    return reserves.quota(this.#nameOf(owner), this.#runtime.now());
  }

  /**
   * Reads the remaining quota from the Gate without consuming any; `undefined` when it does not answer in
   * time.
   */
  async readQuota(owner: Owner, { allowance, share }: Pick<Claims, 'allowance' | 'share'>): Promise<Quota | undefined> {
    try {
      const answer = Promise.resolve(this.#gates.getByName(this.#nameOf(owner)).quota(allowance, share));
      const quota = await within(answer, this.#waitMs, this.#runtime);
      return quota === late ? undefined : quota;
    } catch {
      // The Gate is unreachable; the headers are omitted.
      return undefined;
    }
  }

  /** Ends a request that `enter` began, and records its events. */
  leave(owner: Owner, id: string, audioSeconds: number, record: RequestRecord): void {
    const name = this.#nameOf(owner);
    const attempt = reserves.leave(name, id, audioSeconds);
    reserves.note(name, createRecordEvents(attempt, record));
    this.#reportSoon(owner, name, record.end.at);
  }

  /** Extends the lease of a slot. */
  renew(owner: Owner, id: string): void {
    reserves.renew(this.#nameOf(owner), id, this.#runtime.now());
    this.#waitUntil(this.send(owner, { kind: 'renew', id, events: [] }).catch(() => {}));
  }

  /**
   * Leases a slot at the Gate and appends the attempt with it. `late` when the Gate does not answer in time: the attempt of a
   * buffered tenant is then appended eventually. The Gate may still lease the slot of a strict tenant: `release` then returns
   * it, and a call without an answer is followed by a settle, which returns the slot if there is one.
   */
  async take(owner: Owner, step: TakeStep, release: () => Promise<unknown>): Promise<GateAnswer | typeof late> {
    const { ask, mode, events } = step;
    const isBuffered = mode === 'buffered';
    // A request with a slot of its own counts towards the size of the reserve.
    if (isBuffered) reserves.enterSingle(this.#nameOf(owner), ask.allowance);
    const sent = this.send(owner, step);
    const answer = await within(sent, this.#waitMs, this.#runtime).catch((): typeof late => late);
    if (answer !== late) {
      if (isBuffered && !answer.ok) this.leaveSingle(owner, 0);
      return answer;
    }
    if (isBuffered) this.#buffer(this.#nameOf(owner), [{ kind: 'record', events }]);
    else this.#waitUntil(this.#returnSlot(owner, ask.id, sent, release));
    return late;
  }

  async #returnSlot(owner: Owner, id: string, sent: Promise<GateAnswer>, release: () => Promise<unknown>) {
    const answer = await sent.catch(() => undefined);
    if (answer?.ok) await release();
    if (answer) return;
    const settle = { kind: 'settle', id, mode: 'strict', audioSeconds: 0, events: [] } as const;
    this.#buffer(this.#nameOf(owner), [settle]);
  }

  /** Gives back a slot that `take` leased for a buffered tenant. */
  leaveSingle(owner: Owner, audioSeconds: number): void {
    reserves.leaveSingle(this.#nameOf(owner), audioSeconds);
  }

  #reportSoon(owner: Owner, name: string, now: number): void {
    if (reserves.promise(name, now, this.#waitMs)) this.#waitUntil(this.#report(owner, name));
  }

  /** Reports all of this isolate's requests at a Gate within `GATE_REPORT_MS` in one call. */
  async #report(owner: Owner, name: string): Promise<void> {
    const most = Math.ceil((2 * this.#waitMs) / GATE_REPORT_MS);
    for (let turn = 0; turn <= most && reserves.hasNews(name); turn += 1) {
      await this.#runtime.after(GATE_REPORT_MS).rings;
      const now = this.#runtime.now();
      const stray = reserves.takeStray(name, now, this.#waitMs);
      if (stray) backlog.keep(name, [stray], now);
      // Empty when another call carried it, or while the last one is in flight.
      const report = reserves.report(name, now, false);
      if (report) return void (await this.append(owner, report));
    }
  }

  /**
   * Buffers a step in the isolate and returns before the Gate has it: a lost isolate loses it. Events without a lease leave at
   * once. The end of a lease joins the next call to its Gate within `GATE_DELAY_MS`, so that a busy tenant costs one call
   * for each request and not two.
   */
  appendEventually(owner: Owner, step: GateStep): void {
    const name = this.#nameOf(owner);
    const queue = queues.get(name) ?? [];
    queues.set(name, [...queue, step]);
    const atOnce = step.kind === 'record' || queue.length >= GATE_STEPS_MAX;
    this.#waitUntil(this.#sendQueued(owner, step, atOnce));
  }

  async #sendQueued(owner: Owner, step: GateStep, atOnce: boolean): Promise<void> {
    if (!atOnce) await this.#runtime.after(GATE_DELAY_MS).rings;
    const name = this.#nameOf(owner);
    const queue = queues.get(name) ?? [];
    if (!queue.includes(step)) return;
    queues.set(
      name,
      queue.filter((one) => one !== step),
    );
    await this.append(owner, step);
  }

  /** Buffers steps that shared a call without an answer. */
  async #bufferUnanswered(name: string, shared: readonly GateStep[], answered: Promise<unknown>): Promise<void> {
    const answer = await within(answered, this.#waitMs, this.#runtime).catch(() => late);
    if (answer === late) this.#buffer(name, shared);
  }

  /** Buffers steps whose call failed, for the next call to the Gate. */
  #buffer(name: string, steps: readonly GateStep[]): void {
    for (const step of steps) if (step.kind === 'report') reserves.lost(name, step);
    backlog.keep(name, steps, this.#runtime.now());
  }

  /**
   * Delivers a step within `waitMs`. Returns true when the Gate has it: a strict step is then on its disk. A step without an
   * answer is buffered for a retry, as `otherwise` when a late record must differ.
   */
  async append(owner: Owner, step: GateStep, otherwise: GateStep = step): Promise<boolean> {
    try {
      const sent = this.send(owner, step);
      if ((await within(sent, this.#waitMs, this.#runtime)) !== late) return true;
    } catch {
      // The platform lost the call: the Gate may lack the step.
    }
    this.#buffer(this.#nameOf(owner), [otherwise]);
    return false;
  }

  /**
   * Reports whether a buffered tenant must be treated as a strict one, because its Gate has been unreachable
   * for long.
   */
  isStrained(owner: Owner): boolean {
    return backlog.size > 0 && backlog.isStrained(this.#nameOf(owner), this.#runtime.now());
  }

  /** Records the refusal of an unidentified caller and returns it. A flood is counted, not written one by one. */
  denyUnknown(request: string, action: string, refusal: Refusal): Refusal {
    const { reason, detail } = refusal;
    const second = Math.floor(this.#runtime.now() / 1_000);
    if (anonymous.second !== second) Object.assign(anonymous, { second, recorded: 0 });
    if (anonymous.recorded >= ANONYMOUS_DENIALS_PER_S) {
      anonymous.suppressed += 1;
      return refusal;
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
    this.appendEventually(anonymousOwner, { kind: 'record', events: [event] });
    return refusal;
  }
}

/** Stores that the disk of a gate is full, and drops entries that no longer count. */
function noteFull(name: string, now: number): void {
  for (const [other, fullAt] of fullGates) if (!isRecent(fullAt, now)) fullGates.delete(other);
  fullGates.set(name, now);
}

/** Returns the backlog as steps to send first; empty without one. */
function takeBacklog(name: string, anonymous: boolean, now: number): GateStep[] {
  const kept = backlog.take(name);
  // Losses of forgotten Gates are reported under unknown callers, because no other tenant's record may show
  // them.
  const lost = (kept?.lost ?? 0) + (anonymous ? backlog.takeForgotten() : 0);
  const gap = lost > 0 ? [createEvent({ type: 'gap', lost, from: 0, to: 0 }, now)] : [];
  return [...(gap.length > 0 ? [{ kind: 'record', events: gap } as const] : []), ...(kept?.steps ?? [])];
}
