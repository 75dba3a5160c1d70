// Reports events of the functions through the intake. An accepted report is durable when the call returns; a
// report that does not become durable in time is refused, and its subject must not be done.
import { randomBytes, randomUUID } from 'node:crypto';
import { ownProducer } from '../../../shared/audit/delivery.ts';
import type { AuditEvent, EventDraft } from '../../../shared/audit/event.ts';
import { eventId } from '../../../shared/audit/event-id.ts';
import { commitment } from '../../../shared/audit/privacy.ts';
import { refuse } from '../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../shared/result.ts';
import { isStorageFull, refuseFull } from '../../../shared/storage-full.ts';
import { nameOfReceived, receive } from '../intake/intake.ts';
import { PRODUCER_GONE_MS } from '../limits.ts';
import type { LogStore } from '../log/log-store.ts';
import type { Hide } from '../sidecar/hide.ts';

/**
 * Longest wait for a durable report before the function refuses: less than the 10 s that the edge waits for
 * its answer.
 */
export const REPORT_TIMEOUT_MS = 8_000;
/**
 * Waiting reports of one process and zone: as many as storage takes in REPORT_TIMEOUT_MS at four writes of a
 * batch.
 */
export const REPORTS_WAITING_MAX = 1_024;
/** Reports in one write: as many as a delivery has rows. */
const REPORT_BATCH_MAX = 256;

/** Position of a reported event: the log has it once `upToOf(state, producer, epoch) >= pseq`. */
export interface Reported {
  readonly id: string;
  readonly producer: string;
  readonly epoch: string;
  readonly pseq: number;
}

export interface Reporter {
  /**
   * Into the log of that zone. A refusal is `audit_unavailable`: perhaps it is written all the same. `id`: of an event that
   * may be reported again, so that it is the same one.
   */
  report(zone: string, draft: EventDraft, id?: string): Promise<Result<Reported>>;
  /** Ends the lives of what has been quiet for `quietMs`: from time to time, and with 0 when the process ends. */
  close(quietMs: number): Promise<void>;
}

export interface ReportParts {
  readonly store: Pick<LogStore, 'create'>;
  hide(zone: string): Hide;
  /** Milliseconds since 1970. */
  now(): number;
  /** Rings after so many milliseconds. */
  after(ms: number): { readonly elapsed: Promise<unknown>; cancel(): void };
}

export function openReporter(parts: ReportParts): Reporter {
  const voices = new Map<string, Voice>();
  const voiceOf = (zone: string): Voice => {
    const voice = voices.get(zone) ?? new Voice(parts, zone);
    voices.set(zone, voice);
    return voice;
  };
  return {
    report: (zone, draft, id) => voiceOf(zone).report(draft, id),
    async close(quietMs) {
      await Promise.all([...voices.values()].map((voice) => voice.close(quietMs)));
    },
  };
}

interface Life {
  readonly epoch: string;
  /** Number of its last event that is durable. */
  last: number;
}

interface Waiting {
  readonly event: AuditEvent;
  answer(result: Result<Reported>): void;
}

/**
 * Reports of one zone in order; reports that arrive during a write share the next one. A failed write may
 * have happened, so the next number is unknown: another life begins and states the last safe number of the
 * one before.
 */
class Voice {
  readonly #parts: ReportParts;
  readonly #zone: string;
  readonly #waiting: Waiting[] = [];
  #life: Life | undefined;
  /** An epoch that ended with a failure, which the next one reports. */
  #failed: Life | undefined;
  /** Ends when nothing is being written. */
  #busy: Promise<void> | undefined;
  #lastAt = 0;
  /** Storage was full at the last write. */
  #full = false;

  constructor(parts: ReportParts, zone: string) {
    this.#parts = parts;
    this.#zone = zone;
  }

  report(draft: EventDraft, id?: string): Promise<Result<Reported>> {
    const full = this.#waiting.length >= REPORTS_WAITING_MAX;
    if (full) return Promise.resolve(no(refuse('audit_unavailable', undefined, 'too many reports wait')));
    const event = this.#mint(draft, id);
    const timer = this.#parts.after(REPORT_TIMEOUT_MS);
    return new Promise((settle) => {
      const answer = (result: Result<Reported>) => {
        timer.cancel();
        settle(result);
      };
      const waiting = { event, answer };
      this.#waiting.push(waiting);
      void timer.elapsed.then(() => {
        const at = this.#waiting.indexOf(waiting);
        // A report that timed out before its write is never written; one in a write may be.
        if (at >= 0) this.#waiting.splice(at, 1);
        answer(late());
      });
      void this.#write();
    });
  }

  async close(quietMs: number): Promise<void> {
    await this.#busy;
    this.#wake();
    if (this.#life && this.#parts.now() - this.#lastAt >= quietMs) await this.#alone(() => this.#end());
  }

  /**
   * Begins another epoch after a suspension in which the log may have ended this one, and reports the one
   * before.
   */
  #wake(): void {
    if (!this.#life || this.#parts.now() - this.#lastAt < PRODUCER_GONE_MS) return;
    [this.#failed, this.#life] = [this.#life, undefined];
  }

  async #end(): Promise<void> {
    const life = this.#life;
    this.#life = undefined;
    if (!life) return;
    const last = this.#mint({ type: 'producer.close', last: life.last + 1 });
    // On failure the next life reports it.
    this.#failed = (await this.#put(life, [last])) ? undefined : life;
  }

  #mint(draft: EventDraft, id?: string): AuditEvent {
    const at = this.#parts.now();
    return { ...withoutName(draft), v: 1, id: id ?? eventId(at, randomBytes(10)), at, producer: 'functions' };
  }

  #write(): Promise<void> {
    return this.#alone(async () => {
      while (this.#waiting.length > 0) await this.#writeSome(this.#waiting.splice(0, REPORT_BATCH_MAX));
    });
  }

  /** Does nothing while something else is being written: what waits comes after it. */
  #alone(work: () => Promise<void>): Promise<void> {
    this.#busy ??= work().finally(() => {
      this.#busy = undefined;
      if (this.#waiting.length > 0) void this.#write();
    });
    return this.#busy;
  }

  async #writeSome(some: readonly Waiting[]): Promise<void> {
    this.#wake();
    const life = this.#life ?? { epoch: randomUUID(), last: 0 };
    const first = this.#life ? [] : [this.#mint({ type: 'producer.open', ...this.#previous() })];
    const from = life.last + first.length + 1;
    const done = await this.#put(life, [...first, ...some.map(({ event }) => event)]);
    this.#life = done ? life : undefined;
    if (done) this.#failed = undefined;
    // Also ends a life whose first write failed, since it may have happened.
    else if (life.last > 0 || !this.#failed) this.#failed = life;
    const [producer, { epoch }] = [ownProducer(this.#zone), life];
    for (const [at, { event, answer }] of some.entries()) {
      const failed = this.#full ? no(refuseFull('functions')) : late();
      answer(done ? ok({ id: event.id, producer, epoch, pseq: from + at }) : failed);
    }
  }

  #previous() {
    return this.#failed && { previous: this.#failed.epoch, previousLast: this.#failed.last };
  }

  /** Returns whether the events are durable; `false` when that is unknown. */
  async #put(life: Life, events: readonly AuditEvent[]): Promise<boolean> {
    const { store, hide, now, after } = this.#parts;
    const [zone, t] = [this.#zone, now()];
    const to = life.last + events.length;
    const rows = [{ to, t, events: [...events] }];
    const delivery = { v: 1 as const, producer: ownProducer(zone), epoch: life.epoch, oldest: 1, rows };
    const write = async (): Promise<boolean> => {
      const received = await receive(delivery, t, hide(zone));
      if (!received) return false;
      // `false` of the store: the client library tried again and found what it had done.
      await store.create('intake', nameOfReceived(zone, received), new TextEncoder().encode(JSON.stringify(received)));
      return true;
    };
    const timer = after(REPORT_TIMEOUT_MS);
    const done = await Promise.race([
      write().catch((error) => this.#failedWith(error)),
      timer.elapsed.then(() => false),
    ]);
    timer.cancel();
    if (done) [life.last, this.#lastAt, this.#full] = [to, t, false];
    return done;
  }

  #failedWith(error: unknown): false {
    this.#full = isStorageFull(error);
    return false;
  }
}

/** A report hides no subjects, so a plain name is dropped; only a commitment is written. */
function withoutName(draft: EventDraft): EventDraft {
  if (!('subject' in draft) || commitment.safeParse(draft.subject).success) return draft;
  const { subject: _, ...rest } = draft;
  return rest;
}

const late = (): Result<never> => no(refuse('audit_unavailable', undefined, 'the intake did not take it in time'));
