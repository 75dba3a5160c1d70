import { limits } from '../../shared/limits.ts';
import { isOpen, mayHear } from '../../shared/pool/language.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import type { Final } from '../../shared/speech/transcript.ts';
import { type Due, millisecondsLeft, type Times } from '../../shared/stream/deadlines.ts';
import { Feed } from '../../shared/stream/feed.ts';
import type { Checkpoint, LinkEvent, StreamOptions } from '../../shared/stream/link.ts';
import { Said } from '../../shared/stream/said.ts';
import { after, type State, type StateEvent } from '../../shared/stream/state.ts';
import type { Claims, RequestClass } from '../../shared/tenant/claims.ts';
import { logBug } from '../bug.ts';
import type { RequestContext } from '../context.ts';
import { CLIENT_GONE, refusedWith, Session, type Subject } from '../short/session.ts';
import { recordDenial } from '../tenant/admit.ts';
import { Agents, type Hearer, type Start } from './agents.ts';
import type { Connection } from './connection.ts';
import type { ClientStep, Ending, SessionEvent } from './dialect.ts';
import { type Ready, toldClient, worthMoving } from './find.ts';
import { Intake } from './intake.ts';
import { Outlet } from './outlet.ts';
import { type Resumable, sealResume } from './resume-token.ts';
import { Watch } from './watch.ts';

const ACTION = 'stream';

/** Questions of the session itself have numbers above those of any client. */
const OWN = 2 ** 32;

/** How a client comes back. */
interface Return {
  /** It sends again what was not taken; otherwise what it said meanwhile is missing. */
  readonly positioned: boolean;
  /** Without positions: its sound goes on in the middle of what broke off, and not with a whole sample. */
  readonly inside: boolean;
  /** Index of the first segment that it lacks. */
  readonly next: number | undefined;
}

type Told = { readonly status: number; readonly reason?: string };
type Heard = Parameters<Hearer['hear']>[0];

/**
 * One live session: the client, whichever connection it has now, the audio that no agent has settled, and the agent,
 * whichever it is now. Everything happens in order on one thread; what takes time comes back as an event.
 */
export class LiveSession implements Hearer {
  readonly facts: Resumable;
  readonly claims: Claims;
  readonly #subject: Subject;
  readonly #context: RequestContext;
  readonly #closed: () => void;
  readonly #feed: Feed;
  readonly #said: Said;
  readonly #intake: Intake;
  readonly #outlet = new Outlet();
  readonly #watch: Watch;
  #place: Session | undefined;
  #agents: Agents | undefined;
  #state: State = 'waiting';
  #toldEnding = false;
  #booked = 0;
  #paid: number | undefined;
  /** Numbers of questions on connections before this one, when each begins to count anew. */
  #askedBefore = 0;
  #asked = 0;
  #relieving = false;
  #reliefs = 0;
  /** When the input ended, or something was settled after that, ms since 1970. */
  #finishing: number | undefined;
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
    const { model, language, format, checkpoint } = facts;
    this.facts = facts;
    this.claims = caller.claims;
    this.#subject = { action: ACTION, model, language: isOpen(language) ? undefined : language, class: caller.class };
    this.#context = context;
    this.#closed = closed;
    this.#watch = new Watch(context.surroundings);
    this.#feed = new Feed(format, options, checkpoint);
    this.#said = new Said(checkpoint?.index ?? 0);
    this.#intake = new Intake(this.#feed, (event) => this.#tell(event));
  }

  get state(): State {
    return this.#state;
  }

  /** Seconds of audio since its beginning, at other edges included, that are in the record; none while it lasts. */
  get booked(): number | undefined {
    return this.#paid;
  }

  get heardAt(): number {
    return this.#outlet.heardAt;
  }

  /**
   * Begins with its first connection; `resumed` when the client goes on with what this edge has forgotten, of which
   * `booked` seconds are in the record already.
   */
  begin(connection: Connection, resumed: boolean, booked: number): void {
    this.#booked = booked;
    this.#outlet.attach(connection);
    this.#enter('start');
    const meet: Parameters<Watch['begin']>[1] = (due, times, now) => this.#meet(due, times, now);
    this.#watch.begin(() => this.#look(), meet).catch((error: unknown) => this.broke(error));
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
    const { session, model, language, until } = this.facts;
    const wanted = { session, model, language, until };
    this.#agents = new Agents(wanted, place.value, this.#context, this);
    if (resumed) this.#greet();
    this.#agents.begin(resumed);
  }

  /** Can it tell a client everything it lacks, when the next segment it wants is `next`. */
  canRetell(next: number | undefined): boolean {
    return next === undefined || this.#outlet.canRetell(next, this.#said.next);
  }

  /** Another connection of the same client goes on with it. */
  resume(connection: Connection, { positioned, inside, next }: Return): void {
    const away = (this.#now() - this.#outlet.heardAt) / 1_000;
    const before = this.#outlet.connection;
    if (before) {
      this.#outlet.detach(this.#now());
      before.end({ refusal: refuse('stream_replaced') });
      this.#enter('drop');
    }
    this.#outlet.attach(connection);
    this.#enter('back');
    if (!positioned) this.#askedBefore = this.#asked;
    this.#greet();
    this.#outlet.retell(next);
    if (!positioned) {
      if (!inside) this.#intake.begin();
      if (this.#intake.gap(away)) this.#pump();
    }
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
    if (deliberate || !connection.dialect.resumes) this.#leave();
    else this.#enter('drop');
  }

  /** Ends it with a refusal of ours. */
  refuse(refusal: Refusal): void {
    this.#end('refuse', refusedWith(refusal), { refusal });
  }

  broke(error: unknown): void {
    logBug(this.#context.id, error);
    this.refuse(refuse('internal'));
  }

  #step(step: ClientStep): void {
    switch (step.type) {
      case 'audio': {
        const taken = this.#intake.take(step.audio, step.position);
        if (taken.ok) this.#pump();
        else this.refuse(taken.refusal);
        return;
      }
      case 'options':
        this.#feed.change(step.options);
        this.#pump();
        return;
      case 'finalize':
      case 'clear':
        this.#ask(step.type, step.id);
        return;
      case 'end':
        this.#finish();
        return;
      case 'close':
        this.refuse(step.refusal);
        return;
      case 'start':
      case 'continue':
        this.refuse(refuse('frame_invalid', { rule: 'the session has started already' }));
        return;
      case 'alive':
      case 'wish':
      case 'reply':
    }
  }

  /** A question that was answered before, on a connection that broke, is answered again. */
  #ask(type: 'finalize' | 'clear', id: number): void {
    const own = this.#askedBefore + id;
    this.#asked = Math.max(this.#asked, own);
    const asked = this.#feed.ask(type, own);
    if (asked === 'answered') this.#tell({ type: type === 'finalize' ? 'finalized' : 'cleared', id });
    else this.#pump();
  }

  #finish(): void {
    if (this.#finishing !== undefined || after(this.#state, 'end') === undefined) return;
    this.#enter('end');
    this.#finishing = this.#now();
    this.#feed.end();
    this.#pump();
  }

  #pump(): void {
    const line = this.#agents?.line;
    if (!line) return;
    for (let portion = this.#feed.next(); portion; portion = this.#feed.next()) line.send(portion);
  }

  start(): Start {
    const { model, language, format } = this.facts;
    const { options, from } = this.#feed.origin();
    const said = { ...(language !== undefined && { language }), ...(from && { from }) };
    return { type: 'open', v: 1, task: 'stream', model, format, options, ...said };
  }

  time(): number {
    return this.#feed.checkpoint?.time ?? 0;
  }

  reached(ready: Ready, moved: boolean): boolean {
    if (!isOpen(ready.language) && !mayHear(this.claims.languages, ready.language)) {
      this.refuse(refuse('language_forbidden', { language: ready.language }));
      return false;
    }
    this.#feed.rewind();
    this.#enter('ready');
    if (!this.#outlet.ready) {
      this.#outlet.tellReady(ready);
      this.#acknowledge();
    }
    if (moved) this.#tell({ type: 'moved', agent: ready.agent });
    this.#pump();
    return true;
  }

  lost(): void {
    this.#enter('lost');
  }

  failed(refusal: Refusal): void {
    this.refuse(toldClient(refusal));
  }

  hear(event: Heard): void {
    switch (event.type) {
      case 'keepalive':
      case 'drain':
        return;
      case 'ready':
        this.#distrust('ready twice');
        return;
      case 'heard':
        if (this.#feed.heard(event.position, event.time)) this.#relieve();
        else this.#distrust('heard what was not sent');
        return;
      case 'final':
        this.#complete(event);
        return;
      case 'refusal': {
        const refusal = refuse(event.reason, event.params, 'from the agent');
        if (worthMoving(refusal)) this.#agents?.lose(refusal);
        else this.refuse(refusal);
        return;
      }
      case 'finalized':
        if (this.#feed.answered('finalize', event.id) && event.id < OWN) this.#answer(event);
        return;
      case 'cleared':
        if (this.#feed.answered('clear', event.id)) this.#answer(event);
        return;
      default:
        this.#judge(event);
    }
  }

  /** An utterance that would fill the ring of a wide format is ended before it does: it is settled then. */
  #relieve(): void {
    if (this.#feed.unsettled > limits.streamReliefBytes.value && !this.#relieving) {
      this.#relieving = true;
      this.#feed.ask('finalize', OWN + this.#reliefs++);
    }
    this.#pump();
  }

  settle(checkpoint: Checkpoint): void {
    const before = this.#feed.start;
    if (checkpoint.index > this.#said.next || !this.#feed.settle(checkpoint)) {
      this.#distrust('a checkpoint of something else');
      return;
    }
    this.#relieving = false;
    if (this.#finishing !== undefined && checkpoint.position > before) this.#finishing = this.#now();
    this.#acknowledge();
    this.#outlet.connection?.settle(checkpoint.time);
    this.#pump();
  }

  /** By the client's own number; 0 for what it asked on a connection before, and may still wait for. */
  #answer(event: Extract<LinkEvent, { type: 'finalized' | 'cleared' }>): void {
    this.#judge({ ...event, id: Math.max(0, event.id - this.#askedBefore) });
  }

  #judge(event: Parameters<Said['judge']>[0]): void {
    const judged = this.#said.judge(event);
    if (judged === 'skipped') this.#distrust('a segment is missing');
    else if (judged === 'new') this.#tell(event);
  }

  /** An agent that says what cannot be is not believed any more. */
  #distrust(detail: string): void {
    this.#agents?.lose(refuse('pool_lost', undefined, detail));
  }

  #complete(final: Final & Extract<LinkEvent, { type: 'final' }>): void {
    if (!this.#feed.endSent) {
      this.#distrust('final before the end');
      return;
    }
    if (final.segments > this.#said.next) {
      this.#distrust('a segment is missing');
      return;
    }
    this.#feed.lasted(final.durationSeconds);
    const why = this.#why;
    const ending = why ? { refusal: why } : { final };
    const told = why ? refusedWith(why) : { status: 200 };
    if (this.#outlet.connection) {
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

  /** What may be told when it is known whether the end was recorded: a strict tenant's last word leaves after that. */
  #known(recorded: Promise<boolean> | undefined, ending: Ending): Ending | Promise<Ending> {
    if (!recorded || this.claims.audit === 'buffered') return ending;
    const unrecorded = { refusal: refuse('audit_unavailable', undefined, 'the end could not be recorded') };
    return recorded.then((known) => (known || 'refusal' in ending ? ending : unrecorded));
  }

  /** To a connection that goes on with the session: where that stands. */
  #greet(): void {
    this.#outlet.connection?.say({ type: 'resumed', position: this.#feed.position, time: this.#feed.time });
    this.#acknowledge();
  }

  #acknowledge(): void {
    const { connection } = this.#outlet;
    if (!connection?.dialect.acknowledges) return;
    const { checkpoint } = this.#feed;
    const resume = sealResume(
      { ...this.facts, sealed: this.#now(), ...(checkpoint && { checkpoint }) },
      this.#context.settings,
    );
    connection.say({ type: 'ack', position: this.#feed.start, resume });
  }

  #tell(event: SessionEvent): void {
    if (!this.#outlet.tell(event, this.#now())) this.#leave();
  }

  #leave(): void {
    this.#end('gone', CLIENT_GONE, undefined);
  }

  /** The one end of it. */
  #end(event: 'done' | 'refuse' | 'gone', told: Told, ending: Ending | undefined): void {
    if (this.#state === 'closed') return;
    this.#enter(event);
    this.#watch.end();
    const recorded = this.#release(told);
    const known = ending && this.#known(recorded, ending);
    if (known instanceof Promise) this.#context.waitUntil(known.then((last) => this.#tellEnd(last)));
    else this.#tellEnd(known);
  }

  /** Gives agent and place back; the first call counts. */
  #release(told: Told): Promise<boolean> | undefined {
    const agent = this.#agents?.last;
    const revision = this.#outlet.ready?.revision;
    this.#agents?.end(told.reason ?? 'served');
    const { taken } = this.#feed;
    if (revision !== undefined) this.#paid ??= taken;
    return this.#place?.end({
      ...told,
      ...(revision !== undefined && { final: { durationSeconds: Math.max(0, taken - this.#booked), revision } }),
      ...(agent !== undefined && { agent }),
      bytes: this.#intake.bytes,
    });
  }

  #tellEnd(ending: Ending | undefined): void {
    this.#state = 'closed';
    this.#watch.end();
    if (ending) this.#outlet.end(ending);
    this.#closed();
  }

  #enter(event: StateEvent): void {
    this.#state = after(this.#state, event) ?? this.#state;
  }

  #now(): number {
    return this.#context.surroundings.now();
  }

  #look(): Times {
    if (!this.#done) this.#place?.stillAtWork();
    this.#intake.tellOverflow();
    return {
      ...this.facts,
      taken: this.#feed.taken,
      client: this.#outlet.connection?.heardAt,
      idleMs: this.#outlet.connection?.idleMs,
      dropped: this.#outlet.droppedAt,
      agent: this.#agents?.line?.heardAt,
      finishing: this.#finishing,
      done: this.#done,
    };
  }

  #meet(due: Due, times: Times, now: number): void {
    switch (due) {
      case 'agent_silent':
        this.#distrust('silent for too long');
        return;
      case 'gone':
        this.#leave();
        return;
      case 'late':
        this.refuse(refuse('deadline_passed'));
        return;
      case 'too_long':
        this.#why = refuse('stream_too_long', { limit: Math.round((times.until - times.began) / 1_000) });
        this.#finish();
        return;
      case 'idle':
        this.#why ??= refuse('stream_idle', { limit: (times.idleMs ?? limits.streamIdleMs.value) / 1_000 });
        this.#finish();
        return;
      case 'ending':
        if (!this.#toldEnding) this.#tell({ type: 'ending', seconds: Math.ceil(millisecondsLeft(times, now) / 1_000) });
        this.#toldEnding = true;
    }
  }
}
