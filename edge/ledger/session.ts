import type { AuditEvent } from '../../shared/audit/event.ts';
import { type Refusal, refusals, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Final } from '../../shared/speech/transcript.ts';
import type { Claims, RequestClass } from '../../shared/tenant/claims.ts';
import { recordDenial } from '../auth/admit.ts';
import { late } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import type { Work } from './allowance.ts';
import { LEASE_MS } from './allowance.ts';
import type { AuditDraft, DraftOf, Typed } from './create-event.ts';
import { reportRequest } from './report-request.ts';
import {
  type Attempt,
  type AttemptFields,
  createAttemptEvent,
  createRecordEvents,
  type RequestRecord,
  type TimedDraft,
} from './request-events.ts';

export interface Subject {
  readonly action: string;
  /** Absent until it was found in the body. */
  readonly model: string | undefined;
  readonly language: string | undefined;
  readonly class: RequestClass;
}

/** How a request ended. `reason` is absent when it was served. */
export interface RequestOutcome {
  readonly status: number;
  readonly reason?: string;
  /** Usage, as the agent reports it. */
  readonly final?: Pick<Final, 'revision' | 'durationSeconds' | 'channels'> | undefined;
  readonly agent?: string | undefined;
  readonly bytes: number;
}

/** Returns the recognised seconds: channels that are separate count each. */
const secondsOf = ({ final }: RequestOutcome) => final && final.durationSeconds * (final.channels ?? 1);

/** One admitted request: its slot in the tenant's allowance and its audit record. */
export class Session {
  readonly claims: Claims;
  subject: Subject;
  readonly #context: RequestContext;
  readonly #started: number;
  readonly #notes: TimedDraft[] = [];
  /** Pool of the last attempt. */
  #pool: string | undefined;
  /** Whether the slot is of the isolate's reserve. */
  #isReserved = false;
  #renewed: number;
  #ended: Promise<boolean> | undefined;

  private constructor(claims: Claims, subject: Subject, context: RequestContext) {
    this.claims = claims;
    this.subject = subject;
    this.#context = context;
    this.#started = context.runtime.now();
    this.#renewed = this.#started;
  }

  /**
   * Leases a slot and records the attempt in one step. Refuses a strict tenant with `audit_unavailable` when the Gate does
   * not answer in time, lets a buffered one pass, and refuses as the allowance does. Records a refusal as a denial.
   */
  static async begin(claims: Claims, subject: Subject, context: RequestContext): Promise<Result<Session>> {
    const begun = await Session.#begin(claims, subject, context);
    if (begun.ok) context.admitted = true;
    else recordDenial(claims, subject.action, begun.refusal, context);
    return begun;
  }

  static async #begin(given: Claims, subject: Subject, context: RequestContext): Promise<Result<Session>> {
    const { recorder, id } = context;
    // The backlog of a Gate that does not answer is bounded: past the bound, requests are recorded first.
    const strained = given.audit === 'buffered' && recorder.isStrained(given);
    const claims: Claims = strained ? { ...given, audit: 'strict' } : given;
    const session = new Session(claims, subject, context);
    const attempt: Attempt = { fields: session.#attemptFields(), at: session.#started };
    if (claims.audit === 'buffered') {
      // Slots of a reserve are not counted by token.
      session.#isReserved = !claims.share && recorder.enter(claims, id, attempt, claims.allowance);
      if (session.#isReserved) {
        context.quota = recorder.quota(claims);
        return ok(session);
      }
    }
    return session.#take({ tenant: claims.tenant, action: subject.action }, createAttemptEvent(attempt));
  }

  async #take(work: Work, attempt: AuditEvent): Promise<Result<Session>> {
    const { claims } = this;
    const { recorder, id } = this.#context;
    const { allowance, share, audit: mode } = claims;
    let refusal = refuse('audit_unavailable');
    // Ends a strict attempt that the Gate records too late.
    const release = () => this.end({ ...refusedWith(refusal), bytes: 0 });
    const ask = { id, work, allowance, share };
    const answer = await recorder.take(claims, { kind: 'take', ask, mode, events: [attempt] }, release);
    if (answer === late) {
      if (mode === 'buffered') return ok(this);
      refusal = recorder.refusal(claims, 'the gate does not answer');
      return no(refusal);
    }
    this.#context.quota = answer.quota;
    return answer.ok ? ok(this) : answer;
  }

  /** Runs work of the request. Ends the session when the work refuses or throws; the caller ends a served one. */
  async guard<T>(work: () => Promise<Result<T>>): Promise<Result<T>> {
    let done: Result<T>;
    try {
      done = await work();
    } catch (error) {
      await this.end({ ...refusedWith(refuse('internal')), bytes: 0 });
      throw error;
    }
    if (!done.ok) await this.end({ ...refusedWith(done.refusal), bytes: 0 });
    return done;
  }

  /** Adds model and language that the body named after the attempt was recorded. */
  learn({ model, language }: Pick<Subject, 'model' | 'language'>): void {
    const { action, class: requestClass } = this.subject;
    this.subject = { action, model, language, class: requestClass };
  }

  /** Adds an event to the record, which is written when the request ends. */
  note<D extends Typed>(draft: AuditDraft<D>, at = this.#context.runtime.now()): void {
    const noted: TimedDraft = { draft, at };
    if (noted.draft.type === 'route' && noted.draft.outcome !== 'mirrored') this.#pool = noted.draft.pool;
    this.#notes.push(noted);
  }

  /** Renews the slot of running work. */
  stillAtWork(): void {
    const now = this.#context.runtime.now();
    if (now - this.#renewed < LEASE_MS / 3) return;
    this.#renewed = now;
    this.#context.recorder.renew(this.claims, this.#context.id);
  }

  /**
   * Releases the slot and records the outcome; the first call counts. True when the record is known to be durable:
   * a strict tenant's result must not leave before, and a buffered tenant's record goes with the next call to its gate.
   */
  end(ending: RequestOutcome): Promise<boolean> {
    if (!this.#ended) {
      this.#report(ending);
      this.#ended = this.#settle(ending);
      if (this.claims.audit === 'strict') this.#context.waitUntil(this.#ended);
    }
    return this.#ended;
  }

  /** Answer of `end`; `undefined` before. */
  get ended(): Promise<boolean> | undefined {
    return this.#ended;
  }

  #settle(ending: RequestOutcome): Promise<boolean> {
    const { recorder, id } = this.#context;
    const { audit: mode } = this.claims;
    const audioSeconds = secondsOf(ending) ?? 0;
    if (this.#isReserved) {
      recorder.leave(this.claims, id, audioSeconds, this.#record(ending));
      return Promise.resolve(false);
    }
    const settle = (end: RequestOutcome) =>
      ({ kind: 'settle', id, mode, audioSeconds, events: createRecordEvents(undefined, this.#record(end)) }) as const;
    const step = settle(ending);
    if (mode !== 'strict') {
      recorder.leaveSingle(this.claims, audioSeconds);
      recorder.appendEventually(this.claims, step);
      return Promise.resolve(false);
    }
    // A result without a record in time is withheld, and the stored event says so. If the gate wrote the
    // first end all the same, the later one records what the caller got.
    const withheld = ending.reason === undefined ? settle({ ...ending, ...unrecorded }) : step;
    return recorder.append(this.claims, step, withheld);
  }

  #report(outcome: RequestOutcome): void {
    const { status, reason, agent } = outcome;
    const { action, model } = this.subject;
    const milliseconds = this.#context.runtime.now() - this.#started;
    const audioSeconds = secondsOf(outcome);
    const line = { status, milliseconds, action, reason, model, audioSeconds, agent };
    reportRequest(this.#context, { ...line, owner: this.claims, pool: this.#pool });
  }

  #record(outcome: RequestOutcome): RequestRecord {
    const { status, reason, final, agent, bytes } = outcome;
    const at = this.#context.runtime.now();
    const { tenant, subject } = this.claims;
    const { action, model, class: requestClass, language } = this.subject;
    // Member by member, as every request makes one.
    const draft: DraftOf<'inference.complete'> = {
      type: 'inference.complete',
      tenant,
      request: this.#context.id,
      action,
      class: requestClass,
      model,
      subject,
      language,
      status,
      reason,
      bytes,
      milliseconds: at - this.#started,
      agent,
      revision: final?.revision,
      audioSeconds: secondsOf(outcome),
    };
    return { notes: this.#notes, end: { at, draft } };
  }

  #attemptFields(): AttemptFields {
    const { tenant, subject } = this.claims;
    const { action, model, class: requestClass, language } = this.subject;
    return { tenant, request: this.#context.id, action, class: requestClass, model, subject, language };
  }
}

/** A caller that went away; nginx's number for it, since HTTP has none. */
export const CLIENT_GONE = { status: 499, reason: 'client_gone' } as const;

export const refusedWith = ({ reason }: Refusal) => ({ status: refusals[reason].status, reason });

const unrecorded = refusedWith(refuse('audit_unavailable'));
