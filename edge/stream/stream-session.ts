import { allowsSpoken, isOpen } from '../../shared/pool/language.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import type { Final } from '../../shared/speech/transcript.ts';
import type { StreamOptions } from '../../shared/stream/link.ts';
import type { Claims, RequestClass } from '../../shared/tenant/claims.ts';
import type { RequestContext } from '../context.ts';
import { refuseThrown } from '../http/refuse-thrown.ts';
import { CLIENT_GONE, refusedWith, Session, type Subject } from '../ledger/session.ts';
import type { ClientCommand, Outcome, SessionEvent } from '../protocol/live-protocol.ts';
import type { AgentReady } from './agent-connection.ts';
import { type AudioLease, audioBudget } from './audio-budget.ts';
import { ClientSender } from './client-sender.ts';
import type { ClientSocket, SocketHandler } from './client-socket.ts';
import {
  DeadlineTimer,
  type Due,
  millisecondsLeft,
  STREAM_STARVED_MORE_MS,
  STREAM_STARVED_MS,
  type Times,
} from './deadlines.ts';
import { type EndedSession, endSession } from './ended-sessions.ts';
import { STREAM_IDLE_MS } from './limits.ts';
import { ReplayBuffer } from './replay-buffer.ts';
import { type Resumable, sealResume } from './resume-token.ts';
import { after, type State, type StateEvent } from './session-state.ts';
import { type SessionLanguage, Upstream, type UpstreamListener } from './upstream.ts';

const ACTION = 'stream';
const SERVED = { status: 200 } as const;

/** Outcome for the audit record. */
type Recorded = { readonly status: number; readonly reason?: string };

export interface StreamSessionOptions {
  readonly facts: Resumable;
  readonly options: StreamOptions;
  readonly claims: Claims;
  readonly class: RequestClass;
  /** Context of the request that started the session. */
  readonly context: RequestContext;
  /** Called once, at the end of the session. */
  readonly onClosed: () => void;
}

/**
 * One live session: its state, deadlines, lease and outcome. It passes commands of the client's current socket to the
 * replay buffer and the upstream, and events of the upstream to the client. Work that takes time comes back as an event.
 */
export class StreamSession implements SocketHandler, UpstreamListener {
  readonly facts: Resumable;
  readonly claims: Claims;
  readonly #subject: Subject;
  readonly #context: RequestContext;
  readonly #onClosed: () => void;
  readonly #upstream: Upstream;
  readonly #memory: AudioLease;
  readonly #buffer: ReplayBuffer;
  readonly #sender = new ClientSender();
  readonly #timer: DeadlineTimer;
  #admitted: Session | undefined;
  #state: State = 'waiting';
  #hasWarned = false;
  /** Seconds booked before this session resumed. */
  #booked = 0;
  #ended: EndedSession | undefined;
  /** The client closed the socket after the last word. Nothing that happens later is a failure. */
  #served = false;
  /** Why the edge ended the input. */
  #inputRefusal: Refusal | undefined;
  /** Time until which the session waits for memory alone. */
  #starvedUntil: number | undefined;
  /** The agent finished while the client was disconnected. */
  #done = false;
  /** The outcome of a done session, once it may be sent. */
  #outcome: Outcome | undefined;
  /** Resolves when every `ack` so far was sent. */
  #acknowledged: Promise<void> = Promise.resolve();

  constructor({ facts, options, claims, class: priority, context, onClosed }: StreamSessionOptions) {
    const { model, language, format, checkpoint: from } = facts;
    this.facts = facts;
    this.claims = claims;
    this.#subject = { action: ACTION, model, language: isOpen(language) ? undefined : language, class: priority };
    this.#context = context;
    this.#onClosed = onClosed;
    this.#timer = new DeadlineTimer(context.runtime);
    const mayGrow = (bytes: number) => this.#memory.mayGrow(bytes);
    this.#buffer = new ReplayBuffer({ format, options, from, mayGrow });
    this.#memory = audioBudget.enter(claims.tenant, this.#buffer);
    this.#upstream = new Upstream(facts, this.#buffer, context, this);
  }

  /** State that resumes this session from its token; undefined before the end. */
  get ended(): EndedSession | undefined {
    return this.#ended;
  }

  get isConnected(): boolean {
    return this.#sender.socket !== undefined;
  }

  /** Starts on its first socket. `resumed`: from a token, with `booked` seconds in the record. */
  start(socket: ClientSocket, resumed: boolean, booked: number): void {
    this.#booked = booked;
    this.#connect(socket, 'start');
    const onDue = (due: Due, times: Times, now: number) => this.#onDue(due, times, now);
    const onError = (error: unknown) => this.onError(error);
    this.#timer.start(() => this.#readTimes(), onDue).catch(onError);
    this.#context.waitUntil(this.#admit(resumed).catch(onError));
  }

  async #admit(resumed: boolean): Promise<void> {
    const admitted = await Session.begin(this.claims, this.#subject, this.#context);
    if (!admitted.ok) {
      this.refuse(admitted.refusal);
      return;
    }
    if (this.#state === 'closed') {
      await admitted.value.end({ ...CLIENT_GONE, bytes: 0 });
      return;
    }
    this.#admitted = admitted.value;
    if (resumed) this.#sendResumed();
    this.#upstream.start(admitted.value, resumed);
  }

  /** Reports whether the session can send a resumed client everything that it lacks. */
  canReplayFrom(next: number | undefined): boolean {
    return next === undefined || this.#sender.canReplayFrom(next, this.#upstream.nextSegment);
  }

  /** Goes on with another socket of the client. `next`: index of the first segment that the client lacks. */
  resume(socket: ClientSocket, next: number | undefined): void {
    const before = this.#sender.socket;
    if (before) {
      this.#sender.disconnect(this.#now());
      before.close({ refusal: refuse('stream_replaced') });
      this.#transition('drop');
    }
    this.#connect(socket, 'back');
    this.#sendResumed();
    this.#sender.replay(next);
    if (this.#outcome) this.#close(this.#outcome);
  }

  #connect(socket: ClientSocket, event: 'start' | 'back'): void {
    socket.handler = this;
    this.#sender.connect(socket);
    this.#transition(event);
  }

  onDisconnect(socket: ClientSocket, deliberate: boolean): void {
    if (socket !== this.#sender.socket) return;
    this.#sender.disconnect(this.#now());
    const { resumes, endsByClosing } = socket.protocol;
    this.#served = deliberate && endsByClosing === true && this.#state === 'live' && this.#upstream.isComplete;
    if (this.#served) this.#finish();
    else if (deliberate || !resumes) this.#abandon();
    else this.#transition('drop');
  }

  /** Ends the session with a refusal. */
  refuse(refusal: Refusal): void {
    this.#end('refuse', refusedWith(refusal), { refusal });
  }

  /** Ends the session after a bug. */
  onError(error: unknown): void {
    this.refuse(refuseThrown(this.#context.id, error));
  }

  onCommand(command: ClientCommand): void {
    try {
      this.#run(command);
    } catch (error) {
      this.onError(error);
    }
  }

  #run(command: ClientCommand): void {
    switch (command.type) {
      case 'audio':
        this.#append(command.audio, command.position);
        break;
      case 'options':
        this.#upstream.setOptions(command.options);
        break;
      case 'finalize':
      case 'clear':
        this.#upstream.request(command.type, command.id);
        break;
      case 'end':
        if (this.#buffer.isWhole) this.#finish();
        else this.refuse(refuse('backlog_full'));
        break;
      case 'close':
        this.refuse(command.refusal);
        break;
      case 'start':
        this.refuse(refuse('frame_invalid', { rule: 'the session has started already' }));
        break;
      case 'alive':
      case 'route':
      case 'reply':
    }
  }

  #append(audio: Uint8Array, position: number | undefined): void {
    const appended = this.#buffer.append(audio, position);
    if (!appended.ok) this.refuse(appended.refusal);
    else if (appended.value === 'overflow') this.#reportOverflow();
    else this.#upstream.pump();
  }

  #reportOverflow(): void {
    const overflow = this.#buffer.takeOverflow();
    if (overflow) this.onEvent({ type: 'overflow', ...overflow });
  }

  #finish(): void {
    if (this.#upstream.finishingAt !== undefined || after(this.#state, 'end') === undefined) return;
    this.#transition('end');
    this.#upstream.finish();
  }

  /** Ends the input: the session sends every event of it, and then the refusal. */
  #finishWith(refusal: Refusal): void {
    this.#inputRefusal ??= refusal;
    this.#finish();
  }

  onEvent(event: SessionEvent): void {
    if (!this.#sender.send(event)) this.#abandon();
  }

  onReady(ready: AgentReady): boolean {
    if (!isOpen(ready.language) && !allowsSpoken(this.claims.languages, ready.language)) {
      this.refuse(refuse('language_forbidden', { language: ready.language }));
      return false;
    }
    this.#transition('ready');
    if (this.#sender.ready) this.#sender.replaceReady(ready);
    else {
      this.#sender.sendReady(ready);
      this.#sendAck();
    }
    return true;
  }

  onLanguage(detected: SessionLanguage): boolean {
    const { language, model } = detected;
    if (!allowsSpoken(this.claims.languages, language)) {
      this.refuse(refuse('language_forbidden', { language }));
      return false;
    }
    this.#admitted?.learn({ model, language });
    const { ready } = this.#sender;
    if (ready) this.#sender.replaceReady({ ...ready, model, language });
    this.onEvent({ type: 'language', ...detected });
    return true;
  }

  onLost(): void {
    if (this.#served) this.#abandon();
    else this.#transition('lost');
  }

  onCommit(time: number): void {
    this.#sendAck();
    this.#sender.socket?.commit(time);
  }

  onRefusal(refusal: Refusal): void {
    this.refuse(refusal);
  }

  onFinal(final: Final): void {
    const refusal = this.#inputRefusal;
    const outcome = refusal ? { refusal } : { final };
    const recorded = refusal ? refusedWith(refusal) : SERVED;
    if (this.#sender.socket || this.#served) this.#end('done', recorded, outcome);
    else {
      this.#done = true;
      this.#afterRecord(this.#release(recorded), outcome, (last) => this.#await(last));
    }
  }

  /** Sends the outcome to the client, which may be disconnected. */
  #await(outcome: Outcome): void {
    if (this.#state === 'closed') return;
    this.#outcome = outcome;
    if (!this.#sender.socket) return;
    this.#transition('done');
    this.#close(outcome);
  }

  /** Passes on the outcome. A strict tenant's waits for the record of the end, and is refused without it. */
  #afterRecord(recorded: Promise<boolean> | undefined, outcome: Outcome, send: (outcome: Outcome) => void): void {
    if (!recorded || this.claims.audit === 'buffered') {
      send(outcome);
      return;
    }
    const unrecorded = () => this.#context.recorder.refusal(this.claims, 'the end could not be recorded');
    const sent = recorded.then((known) => send(known || 'refusal' in outcome ? outcome : { refusal: unrecorded() }));
    this.#context.waitUntil(sent);
  }

  /** Sends a resumed client the position where the session goes on. */
  #sendResumed(): void {
    this.#sender.socket?.send({ type: 'resumed', position: this.#buffer.position, time: this.#buffer.clock.end });
    this.#sendAck();
  }

  #sendAck(): void {
    const { socket } = this.#sender;
    if (!socket?.protocol.acknowledges) return;
    const { checkpoint, start: position } = this.#buffer;
    const { revision } = this.#upstream;
    const progress = { ...(revision !== undefined && { revision }), ...(checkpoint && { checkpoint }) };
    const { model, language, family } = this.#upstream.target;
    const token = { ...this.facts, model, language, family, sealed: this.#now(), ...progress };
    const sealed = sealResume(token, this.#context.settings);
    // In the order of the calls: positions never go back.
    this.#acknowledged = this.#acknowledged
      .then(() => sealed)
      .then((resume) => socket.send({ type: 'ack', position, resume }))
      .catch((error) => this.onError(error));
  }

  #abandon(): void {
    this.#end('gone', CLIENT_GONE, undefined);
  }

  /** Ends the session; the first call counts. */
  #end(event: 'done' | 'refuse' | 'gone', recorded: Recorded, outcome: Outcome | undefined): void {
    if (this.#state === 'closed') return;
    this.#transition(event);
    this.#timer.stop();
    const record = this.#release(this.#served ? SERVED : recorded);
    if (outcome) this.#afterRecord(record, outcome, (last) => this.#close(last));
    else this.#close(undefined);
  }

  /** Releases agent and lease; the first call counts. Resolves when the end is recorded. */
  #release(recorded: Recorded): Promise<boolean> | undefined {
    const revision = this.#sender.ready?.revision;
    const { agent } = this.#upstream;
    this.#upstream.close(recorded.reason ?? 'served');
    const { clock, start, checkpoint, appendedBytes } = this.#buffer;
    const { processed } = clock;
    this.#ended ??= endSession({
      position: start,
      from: this.facts.checkpoint?.time ?? 0,
      booked: this.#booked,
      committed: checkpoint?.time ?? 0,
      processed: revision === undefined ? undefined : processed,
    });
    return this.#admitted?.end({
      ...recorded,
      ...(revision !== undefined && { final: { durationSeconds: Math.max(0, processed - this.#booked), revision } }),
      ...(agent !== undefined && { agent }),
      bytes: appendedBytes,
    });
  }

  #close(outcome: Outcome | undefined): void {
    this.#state = 'closed';
    this.#timer.stop();
    this.#memory.end();
    const { ended } = this;
    const onRead = () => {
      if (ended) ended.delivered = true;
    };
    if (outcome) this.#sender.close(outcome, 'final' in outcome ? onRead : undefined);
    this.#onClosed();
  }

  #transition(event: StateEvent): void {
    this.#state = after(this.#state, event) ?? this.#state;
  }

  #now(): number {
    return this.#context.runtime.now();
  }

  #readTimes(): Times {
    if (!this.#done) this.#admitted?.stillAtWork();
    this.#reportOverflow();
    const { random } = this.#context.runtime;
    if (!this.#buffer.isStarved) this.#starvedUntil = undefined;
    else this.#starvedUntil ??= this.#now() + STREAM_STARVED_MS + random() * STREAM_STARVED_MORE_MS;
    return {
      began: this.facts.began,
      until: this.facts.until,
      received: this.#buffer.clock.received,
      client: this.#sender.socket?.receivedAt,
      idleMs: this.#sender.socket?.idleMs,
      disconnected: this.#sender.disconnectedAt,
      agent: this.#upstream.receivedAt,
      finishing: this.#upstream.finishingAt,
      starvedUntil: this.#starvedUntil,
      done: this.#done,
    };
  }

  #onDue(due: Due, times: Times, now: number): void {
    switch (due) {
      case 'agent_silent':
        this.#upstream.distrust('silent for too long');
        break;
      case 'gone':
        this.#abandon();
        break;
      case 'overdue':
        this.refuse(refuse('deadline_passed'));
        break;
      case 'starved':
        this.refuse(refuse('backlog_full'));
        break;
      case 'too_long':
        this.#finishWith(refuse('stream_too_long', { limit: Math.round((times.until - times.began) / 1_000) }));
        break;
      case 'idle':
        this.#finishWith(refuse('stream_idle', { limit: (times.idleMs ?? STREAM_IDLE_MS) / 1_000 }));
        break;
      case 'ending': {
        const seconds = Math.ceil(millisecondsLeft(times, now) / 1_000);
        if (!this.#hasWarned) this.onEvent({ type: 'ending', seconds });
        this.#hasWarned = true;
      }
    }
  }
}
