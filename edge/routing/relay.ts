import { type Refusal, refusals, refuse } from '../../shared/refusal.ts';
import { MIRROR_TEXT_BYTES } from '../../shared/registry/limits.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { Span } from '../../shared/trace/span.ts';
import type { RequestContext } from '../context.ts';
import type { CallerBody } from '../http/caller-body.ts';
import { refuseThrown } from '../http/refuse-thrown.ts';
import { CLIENT_GONE, type RequestOutcome, refusedWith, type Session } from '../ledger/session.ts';
import { agentFinished, agentStarted } from './agent-memory.ts';
import { Answer, agentRefusal, type Ended, type ReadEvent } from './answer.ts';
import { AttemptPlan } from './attempt-plan.ts';
import type { RouteDecision } from './decision.ts';
import { reportDecision } from './decisions.ts';
import { dial } from './dial.ts';
import { type Outcome, outcomeOfRefusal } from './memory.ts';
import { enterMirror, sendMirror } from './mirror.ts';
import { answerTimeLeft } from './retry.ts';
import type { Attempt, RouteRequest } from './route.ts';
import { SUITE } from './setups.ts';

/** A unary request as agents get it. */
export interface AgentRequest<E> {
  readonly task: RouteRequest['task'];
  readonly hints: Pick<RouteRequest, 'model' | 'language' | 'detects'>;
  /** Returns the request for the model of the detected language. Absent: the model of the request serves. */
  readonly redirect?: ((detected: Detected) => Promise<Result<AgentRequest<E>>>) | undefined;
  /** Parameters of the task; the agent reads them before the body. */
  readonly head: Readonly<Record<string, unknown>>;
  /** Zones to serve it in; all of the tenant's by default. */
  readonly zones?: readonly string[] | undefined;
  /** Requests with equal values go to the same agent while it is there. */
  readonly sticky?: string | undefined;
  readonly read: ReadEvent<E>;
  /** Returns the text of an event, for tasks whose requests may be mirrored to revisions on trial. */
  readonly textOf?: ((event: E) => string | undefined) | undefined;
}

/** Language of a recording, as an agent detected it. */
export interface Detected {
  /** BCP 47. */
  readonly language: string;
  /** Probability, 0 to 1. */
  readonly confidence: number;
}

type Emitted<E> = Exclude<E, { type: 'refusal' }>;
type Used = NonNullable<RequestOutcome['final']>;

/** The end of a request. One of `end`, `broke` and `abandon` is called; the first counts. */
export interface RelayOutcomes {
  /** Marks that the caller has seen part of the answer: no other agent can take over. */
  deliver(): void;
  /** Ends served or refused work. `judge` may forbid the result. Returns a refusal when the result must not leave. */
  end<T extends Used>(outcome: Result<T>, judge?: (final: T) => Result<undefined>): Promise<Result<undefined>>;
  /** Ends work that threw. Returns the refusal for the caller. */
  broke(error: unknown): Promise<Refusal>;
  /** Ends the work of a caller that went away. */
  abandon(): void;
}

/** A call that an agent answers. */
interface AgentCall<E extends { readonly type: string }> {
  readonly attempt: Attempt;
  readonly answer: Answer<E>;
  readonly began: number;
  readonly abort: AbortController;
  readonly span: Span | undefined;
}

/**
 * One admitted request at the agents. While the caller has seen no part of the answer and the body can be sent again, a
 * lost agent is replaced by another one, whose `ready` restarts the events.
 */
export class Relay<E extends { readonly type: string } | Ended> implements RelayOutcomes {
  readonly #session: Session;
  readonly #body: CallerBody;
  #agentRequest: AgentRequest<E>;
  readonly #context: RequestContext;
  #plan: AttemptPlan;
  /** Attempts before the request was redirected. */
  #madeBefore = 0;
  readonly #tried: RouteDecision['attempts'] = [];
  /** Time spent on calls that no agent answered, ms. */
  #dialledMs = 0;
  #dialling: AbortController | undefined;
  #call: AgentCall<E> | undefined;
  #delivered = false;
  #closed = false;
  #abandoned = false;
  /** Agent of the last attempt, for the record. */
  #agent: string | undefined;
  /** The transcript served so far, of a mirrored request. */
  #text = '';
  #signal: AbortSignal | undefined;
  /** Id of the request, for an error within an answer that has begun. */
  readonly request: string;

  constructor(session: Session, body: CallerBody, agentRequest: AgentRequest<E>, context: RequestContext) {
    this.#session = session;
    this.#body = body;
    this.#agentRequest = agentRequest;
    this.#context = context;
    this.request = context.id;
    if (agentRequest.redirect) body.hold();
    this.#plan = planOf(session, agentRequest, context);
  }

  /** Abandons the request when its caller goes away. */
  watch(signal: AbortSignal): void {
    this.#signal = signal;
    if (signal.aborted) this.abandon();
    else signal.addEventListener('abort', this.abandon, { once: true });
  }

  /** Returns the next event. A refusal is the end, and so is `final`. */
  async next(): Promise<Result<Emitted<E>>> {
    for (;;) {
      if (this.#closed) return no(gone);
      const call = this.#call ? ok(this.#call) : await this.#callNext();
      const event = call.ok ? await this.#receive(call.value) : call;
      if (event.ok) {
        this.#session.stillAtWork();
        if (this.#plan.mirror) this.#text += textAfter(this.#text, this.#agentRequest.textOf?.(event.value));
        if (event.value.type === 'final') this.#finish('served', 'healthy');
        return event;
      }
      // The caller's own fault comes first, whatever the agent made of the body.
      const { refusal: fault } = this.#body;
      const cause = fault ?? event.refusal;
      this.#finish(cause.reason, fault ? 'neutral' : outcomeOfRefusal(cause.reason));
      const refusal = await this.#recover(cause);
      if (refusal) {
        this.#close(refusal.reason);
        return no(refusal);
      }
    }
  }

  deliver(): void {
    this.#delivered = true;
  }

  async end<T extends Used>(
    outcome: Result<T>,
    judge: (final: T) => Result<undefined> = () => ok(undefined),
  ): Promise<Result<undefined>> {
    this.#close(outcome.ok ? 'served' : outcome.refusal.reason);
    const session = this.#session;
    if (!outcome.ok) {
      if (!this.#abandoned) this.#logFailure(outcome.refusal);
      const ending = this.#body.isCut ? CLIENT_GONE : refusedWith(outcome.refusal);
      await session.end({ ...ending, ...this.#used() });
      return ok(undefined);
    }
    const judged = judge(outcome.value);
    const status = judged.ok ? { status: 200 } : refusedWith(judged.refusal);
    const ended = session.end({ ...status, final: outcome.value, ...this.#used() });
    if (!judged.ok) {
      await ended;
      return judged;
    }
    if (session.claims.audit === 'buffered' || (await ended)) return ok(undefined);
    return no(this.#context.recorder.refusal(session.claims, 'the end could not be recorded'));
  }

  async broke(error: unknown): Promise<Refusal> {
    const refusal = refuseThrown(this.#context.id, error);
    try {
      this.#close(refusal.reason);
    } finally {
      await this.#session.end({ ...refusedWith(refusal), ...this.#used() });
    }
    return refusal;
  }

  readonly abandon = (): void => {
    this.#abandoned = true;
    this.#close(CLIENT_GONE.reason);
    void this.#session.end({ ...CLIENT_GONE, ...this.#used() });
  };

  #used = () => ({ agent: this.#agent, bytes: this.#body.received });

  /** Logs a failure that the operator can mend; a caller's own mistakes are in the record only. */
  #logFailure({ reason, detail }: Refusal): void {
    if (refusals[reason].status < 500) return;
    console.warn(JSON.stringify({ event: 'failed', request: this.#context.id, reason, detail, agent: this.#agent }));
  }

  /** Stops the agent's work, if it has not finished; the record gets `reason`. */
  #close(reason: string): void {
    const explanation = this.#closed ? undefined : this.#plan.explanation;
    this.#closed = true;
    this.#signal?.removeEventListener('abort', this.abandon);
    this.#finish(reason, 'neutral');
    if (explanation) reportDecision(explanation, this.#tried, reason, this.#context);
    this.#dialling?.abort();
    this.#body.cancel();
  }

  /** Adds the language that an agent detected to the record. */
  learn(language: string): void {
    this.#session.learn({ model: this.#agentRequest.hints.model, language });
  }

  /** Prepares another attempt after a failed one. Returns the refusal for the caller where there is none. */
  async #recover(cause: Refusal): Promise<Refusal | undefined> {
    // The next agent answers from the first word on.
    this.#text = '';
    const { redirect } = this.#agentRequest;
    const detected = readDetected(cause);
    const { replayable } = this.#body;
    if (!redirect || !detected) return this.#plan.refusalAfter(cause, replayable, this.#delivered);
    if (!replayable || this.#delivered) return tooLate(detected);
    const redirected = await redirect(detected);
    if (!redirected.ok) return redirected.refusal;
    this.#madeBefore += this.#plan.made;
    this.#agentRequest = redirected.value;
    this.#plan = planOf(this.#session, redirected.value, this.#context);
    this.#body.endHold();
    this.learn(detected.language);
    return undefined;
  }

  get #attempt(): number {
    return this.#madeBefore + this.#plan.made;
  }

  /** Calls the next agent. */
  async #callNext(): Promise<Result<AgentCall<E>>> {
    const { runtime } = this.#context;
    const planned = await this.#plan.next();
    if (!planned.ok) return planned;
    const { value: attempt } = planned;
    const { agent } = attempt.entry.description;
    this.#agent = agent;
    const began = runtime.now();
    const abort = new AbortController();
    const { pool } = attempt.entry.description;
    const span = this.#context.span?.child('call agent', 'client', { 'auricle.agent': agent, 'auricle.pool': pool });
    agentStarted(agent);
    const failed = ({ reason }: Refusal) => {
      abort.abort();
      const now = runtime.now();
      span?.end({}, reason);
      this.#dialledMs += now - began;
      this.#note(attempt, reason, now);
      agentFinished(agent, this.#closed ? 'neutral' : outcomeOfRefusal(reason), 0, now);
    };
    try {
      const answer = await this.#dial(attempt, abort, span);
      if (!answer.ok) {
        failed(answer.refusal);
        return answer;
      }
      this.#call = { attempt, answer: answer.value, began, abort, span };
      return ok(this.#call);
    } catch (error) {
      failed(refuse('internal'));
      throw error;
    } finally {
      this.#dialling = undefined;
    }
  }

  async #dial({ entry, model }: Attempt, abort: AbortController, span?: Span): Promise<Result<Answer<E>>> {
    const { runtime, settings, id } = this.#context;
    const { claims, subject } = this.#session;
    const { hints, head, read } = this.#agentRequest;
    const { agent } = entry.description;
    const { tenant } = claims;
    const body = (await this.#body.gather()) ?? this.#body.open();
    if (this.#closed) return no(gone);
    this.#dialling = abort;
    const { revision } = model;
    const facts = { id: `${id}.${this.#attempt}`, agent, tenant, class: subject.class, model: hints.model, revision };
    const startMs = answerTimeLeft(this.#dialledMs);
    const { signal } = abort;
    const { traceparent } = span ?? {};
    const dialled = await dial({ entry, facts, head, body, signal, startMs, traceparent }, settings, runtime);
    if (!dialled.ok) return dialled;
    const answer = new Answer(dialled.value, read, runtime);
    if (this.#closed) {
      answer.close();
      return no(gone);
    }
    const { freshSeal, suite } = dialled.value;
    if (freshSeal) this.#session.note({ type: 'keys', tenant, agent, action: 'setup', suite });
    return ok(answer);
  }

  async #receive({ answer }: AgentCall<E>): Promise<Result<Emitted<E>>> {
    const next = answer.next();
    const event = await (this.#body.ended ? next : Promise.race([next, this.#body.failed.then(no)]));
    if (!event.ok) return event;
    const { value } = event;
    if (isRefusal(value)) return no(agentRefusal(value));
    // Any event but the first says that the agent keeps the request.
    if (value.type !== 'ready') this.#body.endHold();
    return ok(value as Emitted<E>);
  }

  /** Ends the current call, if there is one, and records its outcome. */
  #finish(reason: string, outcome: Outcome): void {
    const call = this.#call;
    if (!call) return;
    this.#call = undefined;
    const { runtime, waitUntil } = this.#context;
    const now = runtime.now();
    call.span?.end({}, reason === 'served' ? undefined : reason);
    const worked = now - Math.max(call.began, this.#body.endedAt ?? call.began);
    agentFinished(call.attempt.entry.description.agent, outcome, worked, now);
    this.#note(call.attempt, reason, now);
    if (reason === 'served') {
      this.#sendMirror(now);
      waitUntil(call.answer.drain());
      return;
    }
    call.answer.close();
    call.abort.abort();
  }

  /** Mirrors the served request to a revision on trial while there is a slot; the record names the copy. */
  #sendMirror(now: number): void {
    const { mirror: to } = this.#plan;
    const body = to && this.#body.whole();
    const text = this.#text;
    if (!body || Buffer.byteLength(text) > MIRROR_TEXT_BYTES) return;
    const slot = enterMirror(now);
    if (!slot) return;
    this.#note(to, 'mirrored', now);
    const { claims } = this.#session;
    const { hints, head } = this.#agentRequest;
    const recorded = () => this.#session.ended;
    const mirror = { to, slot, claims, model: hints.model, head, body, text, recorded };
    this.#context.waitUntil(sendMirror(mirror, this.#context));
  }

  #note({ entry, why }: Attempt, outcome: string, now: number): void {
    const { pool, agent, zone } = entry.description;
    const { tenant } = this.#session.claims;
    const request = this.#context.id;
    this.#tried.push({ agent, pool, zone, why, outcome });
    this.#session.note(
      { type: 'route', tenant, request, attempt: this.#attempt, pool, agent, zone, why, outcome },
      now,
    );
  }
}

function planOf<E>(session: Session, request: AgentRequest<E>, context: RequestContext): AttemptPlan {
  const mayMirror = request.textOf !== undefined && session.claims.mirror !== 'forbidden';
  return new AttemptPlan(routeOf(session, request, context), mayMirror, context);
}

/** Reads the language in the refusal of an agent whose model serves another one. */
export function readDetected({ reason, params = {} }: Refusal): Detected | undefined {
  const { language, confidence } = params;
  const isDetected = reason === 'misdirected' && typeof language === 'string' && typeof confidence === 'number';
  return isDetected ? { language, confidence } : undefined;
}

/** Refuses a recording whose beginning is no longer buffered, or whose answer has begun. */
const tooLate = ({ language }: Detected): Refusal =>
  refuse('language_needed', { rule: `the speech is in "${language}", which was known too late to choose its model` });

function routeOf<E>(
  { claims, subject }: Session,
  request: AgentRequest<E>,
  { id, place }: RequestContext,
): RouteRequest {
  const { task, sticky, hints, zones = claims.zones } = request;
  const { tenant, languages: allowed } = claims;
  // Each recording is a session of its own: gates count it as one sample (`rates.ts`).
  return { tenant, session: id, ...hints, task, sticky, allowed, zones, suite: SUITE, class: subject.class, place };
}

const textAfter = (before: string, more: string | undefined): string =>
  more === undefined ? '' : before === '' ? more : ` ${more}`;

const gone = refuse('pool_lost', undefined, 'the caller is gone');

const isRefusal = (event: { readonly type: string }): event is Extract<Ended, { type: 'refusal' }> =>
  event.type === 'refusal';
