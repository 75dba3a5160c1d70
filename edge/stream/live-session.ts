import { limits } from '../../shared/limits.ts';
import { isOpen, mayHear } from '../../shared/pool/language.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import type { Final } from '../../shared/speech/transcript.ts';
import type { StreamOptions } from '../../shared/stream/link.ts';
import type { Claims, RequestClass } from '../../shared/tenant/claims.ts';
import { refuseThrown } from '../bug.ts';
import type { RequestContext } from '../context.ts';
import { CLIENT_GONE, refusedWith, Session, type Subject } from '../short/session.ts';
import { recordDenial } from '../tenant/admit.ts';
import type { AgentReady } from './agent-connection.ts';
import { type AudioLease, audioBudget } from './audio-budget.ts';
import type { Connection } from './connection.ts';
import { DeadlineTimer, type Due, millisecondsLeft, type Times } from './deadlines.ts';
import type { ClientStep, Ending, SessionEvent } from './dialect.ts';
import { Outlet } from './outlet.ts';
import { type Remains, remainsOf } from './remains.ts';
import { ReplayBuffer } from './replay-buffer.ts';
import { type Resumable, sealResume } from './resume-token.ts';
import { after, type State, type StateEvent } from './session-state.ts';
import { Upstream, type UpstreamListener } from './upstream.ts';

const ACTION = 'stream';
const SERVED = { status: 200 } as const;

type Told = { readonly status: number; readonly reason?: string };

/**
 * One live session: its client, whichever connection that has now, its place in the allowance, and its end. What agents
 * hear is `hearing.ts`. Everything happens in order on one thread; what takes time comes back as an event.
 */
export class LiveSession implements UpstreamListener {
  readonly facts: Resumable;
  readonly claims: Claims;
  readonly #subject: Subject;
  readonly #context: RequestContext;
  readonly #closed: () => void;
  readonly #upstream: Upstream;
  readonly #audio: AudioLease;
  readonly #buffer: ReplayBuffer;
  readonly #outlet = new Outlet();
  readonly #watch: DeadlineTimer;
  #place: Session | undefined;
  #state: State = 'waiting';
  #toldEnding = false;
  #booked = 0;
  #remains: Remains | undefined;
  /** The client closed the connection after the last word. Nothing that happens later is a failure. */
  #served = false;
  /** Why the input ended, when the client did not say so. */
  #why: Refusal | undefined;
  /** All was said while the client was away, and how it ended, when that may be told. */
  #done = false;
  #outcome: Ending | undefined;

  /** `context`: of the request that opened it; `closed` is called once, at its end. */
  constructor(
    facts: Resumable,
    options: StreamOptions,
    caller: { readonly claims: Claims; readonly class: RequestClass },
    context: RequestContext,
    closed: () => void,
  ) {
    const { model, language } = facts;
    this.facts = facts;
    this.claims = caller.claims;
    this.#subject = { action: ACTION, model, language: isOpen(language) ? undefined : language, class: caller.class };
    this.#context = context;
    this.#closed = closed;
    this.#watch = new DeadlineTimer(context.surroundings);
    const { format, checkpoint: from } = facts;
    const mayGrow = (bytes: number) => this.#audio.mayGrow(bytes);
    this.#buffer = new ReplayBuffer({ format, options, from, mayGrow });
    this.#audio = audioBudget.enter(caller.claims.tenant, this.#buffer);
    this.#upstream = new Upstream(facts, this.#buffer, context, this);
  }

  get state(): State {
    return this.#state;
  }

  /** State for a session that resumes from its token; absent while it lasts. */
  get remains(): Remains | undefined {
    return this.#remains;
  }

  /**
   * Begins with its first connection; `resumed` when the client goes on with what this edge has forgotten, of which
   * `booked` seconds are in the record already.
   */
  begin(connection: Connection, resumed: boolean, booked: number): void {
    this.#booked = booked;
    this.#outlet.attach(connection);
    this.#enter('start');
    const meet: Parameters<DeadlineTimer['start']>[1] = (due, times, now) => this.#meet(due, times, now);
    this.#watch.start(() => this.#look(), meet).catch((error: unknown) => this.broke(error));
    this.#context.waitUntil(this.#admit(resumed).catch((error: unknown) => this.broke(error)));
  }

  async #admit(resumed: boolean): Promise<void> {
    const place = await Session.begin(this.claims, this.#subject, this.#context);
    if (!place.ok) {
      recordDenial(this.claims, ACTION, place.refusal, this.#context);
      this.refuse(place.refusal);
      return;
    }
    if (this.#state === 'closed') {
      await place.value.end({ ...CLIENT_GONE, bytes: 0 });
      return;
    }
    this.#place = place.value;
    if (resumed) this.#greet();
    this.#upstream.start(place.value, resumed);
  }

  /** Can it tell a client everything it lacks, when the next segment it wants is `next`. */
  canRetell(next: number | undefined): boolean {
    return next === undefined || this.#outlet.canRetell(next, this.#upstream.nextSegment);
  }

  /** Another connection of the same client goes on with it; `next` is the first segment that it lacks. */
  resume(connection: Connection, next: number | undefined): void {
    const before = this.#outlet.connection;
    if (before) {
      this.#outlet.detach(this.#now());
      before.end({ refusal: refuse('stream_replaced') });
      this.#enter('drop');
    }
    this.#outlet.attach(connection);
    this.#enter('back');
    this.#greet();
    this.#outlet.retell(next);
    if (this.#outcome) this.#tellEnd(this.#outcome);
  }

  step(step: ClientStep): void {
    try {
      this.#step(step);
    } catch (error) {
      this.broke(error);
    }
  }

  dropped(connection: Connection, deliberate: boolean): void {
    if (connection !== this.#outlet.connection) return;
    this.#outlet.detach(this.#now());
    const { resumes, endsByClosing } = connection.dialect;
    this.#served = deliberate && endsByClosing === true && this.#state === 'live' && this.#upstream.isComplete;
    if (this.#served) this.#finish();
    else if (deliberate || !resumes) this.#leave();
    else this.#enter('drop');
  }

  /** Ends it with a refusal of ours. */
  refuse(refusal: Refusal): void {
    this.#end('refuse', refusedWith(refusal), { refusal });
  }

  onRefusal(refusal: Refusal): void {
    this.refuse(refusal);
  }

  onError(error: unknown): void {
    this.broke(error);
  }

  broke(error: unknown): void {
    this.refuse(refuseThrown(this.#context.id, error));
  }

  #step(step: ClientStep): void {
    switch (step.type) {
      case 'audio': {
        const appended = this.#buffer.append(step.audio, step.position);
        if (!appended.ok) this.refuse(appended.refusal);
        else if (appended.value === 'overflow') this.#tellOverflow();
        else this.#upstream.pump();
        return;
      }
      case 'options':
        this.#upstream.setOptions(step.options);
        return;
      case 'finalize':
      case 'clear':
        this.#upstream.request(step.type, step.id);
        return;
      case 'end': {
        if (this.#buffer.isWhole) this.#finish();
        else this.refuse(refuse('backlog_full'));
        return;
      }
      case 'close':
        this.refuse(step.refusal);
        return;
      case 'start':
        this.refuse(refuse('frame_invalid', { rule: 'the session has started already' }));
        return;
      case 'alive':
      case 'wish':
      case 'reply':
    }
  }

  #finish(): void {
    if (this.#upstream.finishingAt !== undefined || after(this.#state, 'end') === undefined) return;
    this.#enter('end');
    this.#upstream.finish();
  }

  /** Ends the input here: the session reports everything taken so far, and then the refusal. */
  #finishWith(refusal: Refusal): void {
    this.#why ??= refusal;
    this.#finish();
  }

  onEvent(event: SessionEvent): void {
    if (!this.#outlet.tell(event)) this.#leave();
  }

  onReady(ready: AgentReady): boolean {
    if (!isOpen(ready.language) && !mayHear(this.claims.languages, ready.language)) {
      this.refuse(refuse('language_forbidden', { language: ready.language }));
      return false;
    }
    this.#enter('ready');
    if (!this.#outlet.ready) {
      this.#outlet.tellReady(ready);
      this.#acknowledge();
    }
    return true;
  }

  onLost(): void {
    if (this.#served) this.#leave();
    else this.#enter('lost');
  }

  onCommit(time: number): void {
    this.#acknowledge();
    this.#outlet.connection?.settle(time);
  }

  onFinal(final: Final): void {
    const why = this.#why;
    const ending = why ? { refusal: why } : { final };
    const told = why ? refusedWith(why) : SERVED;
    if (this.#outlet.connection || this.#served) {
      this.#end('done', told, ending);
      return;
    }
    // The client may still come back for it.
    this.#done = true;
    const known = this.#known(this.#release(told), ending);
    if (known instanceof Promise) this.#context.waitUntil(known.then((last) => this.#await(last)));
    else this.#await(known);
  }

  /** All was said and recorded: that is told to the client, or to whichever connection it comes back with. */
  #await(ending: Ending): void {
    if (this.#state === 'closed') return;
    this.#outcome = ending;
    if (!this.#outlet.connection) return;
    this.#enter('done');
    this.#tellEnd(ending);
  }

  /** Returns the ending to send. A strict tenant's waits for the record of its end. */
  #known(recorded: Promise<boolean> | undefined, ending: Ending): Ending | Promise<Ending> {
    if (!recorded || this.claims.audit === 'buffered') return ending;
    const unrecorded = () => ({
      refusal: this.#context.recorder.refusal(this.claims, 'the end could not be recorded'),
    });
    return recorded.then((known) => (known || 'refusal' in ending ? ending : unrecorded()));
  }

  /** To a connection that goes on with the session: where that stands. */
  #greet(): void {
    this.#outlet.connection?.say({
      type: 'resumed',
      position: this.#buffer.position,
      time: this.#buffer.clock.end,
    });
    this.#acknowledge();
  }

  #acknowledge(): void {
    const { connection } = this.#outlet;
    if (!connection?.dialect.acknowledges) return;
    const { checkpoint } = this.#buffer;
    const resume = sealResume(
      { ...this.facts, sealed: this.#now(), ...(checkpoint && { checkpoint }) },
      this.#context.settings,
    );
    connection.say({ type: 'ack', position: this.#buffer.start, resume });
  }

  #leave(): void {
    this.#end('gone', CLIENT_GONE, undefined);
  }

  /** The one end of it. */
  #end(event: 'done' | 'refuse' | 'gone', told: Told, ending: Ending | undefined): void {
    if (this.#state === 'closed') return;
    this.#enter(event);
    this.#watch.stop();
    const recorded = this.#release(this.#served ? SERVED : told);
    const known = ending && this.#known(recorded, ending);
    if (known instanceof Promise) this.#context.waitUntil(known.then((last) => this.#tellEnd(last)));
    else this.#tellEnd(known);
  }

  /** Gives agent and place back; the first call counts. */
  #release(told: Told): Promise<boolean> | undefined {
    const { agent } = this.#upstream;
    const buffer = this.#buffer;
    const revision = this.#outlet.ready?.revision;
    this.#upstream.close(told.reason ?? 'served');
    const heard = buffer.clock.processed;
    this.#remains ??= remainsOf({
      position: buffer.start,
      from: this.facts.checkpoint?.time ?? 0,
      booked: this.#booked,
      settled: buffer.checkpoint?.time ?? 0,
      taken: revision === undefined ? undefined : heard,
    });
    return this.#place?.end({
      ...told,
      ...(revision !== undefined && { final: { durationSeconds: Math.max(0, heard - this.#booked), revision } }),
      ...(agent !== undefined && { agent }),
      bytes: this.#buffer.appendedBytes,
    });
  }

  #tellEnd(ending: Ending | undefined): void {
    this.#state = 'closed';
    this.#watch.stop();
    this.#audio.end();
    const { remains } = this;
    const heard = () => {
      if (remains) remains.over = true;
    };
    if (ending) this.#outlet.end(ending, 'final' in ending ? heard : undefined);
    this.#closed();
  }

  #enter(event: StateEvent): void {
    this.#state = after(this.#state, event) ?? this.#state;
  }

  #tellOverflow(): void {
    const overflow = this.#buffer.takeOverflow();
    if (overflow) this.onEvent({ type: 'overflow', ...overflow });
  }

  #now(): number {
    return this.#context.surroundings.now();
  }

  #look(): Times {
    if (!this.#done) this.#place?.stillAtWork();
    this.#tellOverflow();
    return {
      ...this.facts,
      received: this.#buffer.clock.received,
      client: this.#outlet.connection?.heardAt,
      idleMs: this.#outlet.connection?.idleMs,
      disconnected: this.#outlet.droppedAt,
      agent: this.#upstream.receivedAt,
      finishing: this.#upstream.finishingAt,
      done: this.#done,
    };
  }

  #meet(due: Due, times: Times, now: number): void {
    switch (due) {
      case 'agent_silent':
        this.#upstream.distrust('silent for too long');
        return;
      case 'gone':
        this.#leave();
        return;
      case 'overdue':
        this.refuse(refuse('deadline_passed'));
        return;
      case 'too_long':
        this.#finishWith(refuse('stream_too_long', { limit: Math.round((times.until - times.began) / 1_000) }));
        return;
      case 'idle':
        this.#finishWith(refuse('stream_idle', { limit: (times.idleMs ?? limits.streamIdleMs.value) / 1_000 }));
        return;
      case 'ending':
        if (!this.#toldEnding)
          this.onEvent({ type: 'ending', seconds: Math.ceil(millisecondsLeft(times, now) / 1_000) });
        this.#toldEnding = true;
    }
  }
}
