import { type Refusal, refuse } from '../../shared/refusal.ts';
import type { Final } from '../../shared/speech/transcript.ts';
import type { Checkpoint, LinkEvent, StreamOptions } from '../../shared/stream/link.ts';
import type { RequestContext } from '../context.ts';
import type { Session } from '../ledger/session.ts';
import type { SessionEvent } from '../protocol/live-protocol.ts';
import type { Target } from '../routing/family.ts';
import { resolveTarget } from '../routing/model-names.ts';
import { type Detected, readDetected } from '../routing/relay.ts';
import { publicRefusal } from '../routing/retry.ts';
import type { AgentConnection, AgentListener, AgentReady } from './agent-connection.ts';
import { AgentFinder, type FoundAgent, type OpenControl, type Outlasts } from './agent-finder.ts';
import { mayFailOver } from './agent-route.ts';
import { type ClientEvent, EventFilter } from './event-filter.ts';
import type { RequestType } from './pending-requests.ts';
import type { ReplayBuffer } from './replay-buffer.ts';
import type { Resumable } from './resume-token.ts';
import { SpeechTracker } from './speech-tracker.ts';

/**
 * Longest search for the first agent: two silent ones, a pool that is busy for a moment, or a registry that
 * has just started.
 */
export const STREAM_FIND_MS = 10_000;
/**
 * Longest search for another agent after a loss, or for one that serves the detected language: an outage of a
 * minute and an engine's start after it.
 */
export const STREAM_MOVE_MS = 120_000;
/** Agents in a row that fail without progress: sound that breaks recognisers must not break all of them. */
export const STREAM_MOVES_MAX = 3;
/**
 * Agents that one session may lose, each of them in the record: more is a fault that moving does not repair.
 */
export const STREAM_AGENTS_MAX = 100;

/** First id of the edge's own requests, above those of any client. */
const FIRST_OWN_ID = 2 ** 32;

/** Receives what the agents of a session report. */
export interface UpstreamListener {
  /** An event for the client; each comes once. */
  onEvent(event: SessionEvent): void;
  /** An agent begins. Returns false when the session may not go on with it, and has ended. */
  onReady(ready: AgentReady): boolean;
  /** The agent was lost, and another one is being searched. */
  onLost(): void;
  /** The client has every word before `time`. */
  onCommit(time: number): void;
  /** The agent has sent everything. */
  onFinal(final: Final): void;
  onRefusal(refusal: Refusal): void;
  onError(error: unknown): void;
  /** The language of the session is known. Returns false when the session may not go on, and has ended. */
  onLanguage(detected: SessionLanguage): boolean;
}

/** Detected language, and the model that serves it. */
export interface SessionLanguage extends Detected {
  readonly model: string;
}

/**
 * The agents of one session, one at a time. Sends them the replay buffer, checks and deduplicates their events, and
 * replaces a lost, draining or misbehaving agent: the next one replays from the last checkpoint.
 */
export class Upstream implements AgentListener {
  readonly #facts: Resumable;
  readonly #buffer: ReplayBuffer;
  readonly #context: RequestContext;
  readonly #listener: UpstreamListener;
  readonly #filter: EventFilter;
  readonly #speech = new SpeechTracker();
  #admitted: Session | undefined;
  #finder: AgentFinder | undefined;
  #current: FoundAgent | undefined;
  #search: AbortController | undefined;
  /** Deadline of the current search, epoch ms. */
  #searchUntil = 0;
  /** A candidate began at the last checkpoint. Checkpoints of the current agent wait in `#laterCheckpoint`. */
  #isPinned = false;
  #laterCheckpoint: Checkpoint | undefined;
  /** Agents that failed in a row without a checkpoint. */
  #failures = 0;
  #losses = 0;
  /** Name of the last agent, and why it was lost. */
  #agent: string | undefined;
  /** Revision of the current or last agent. */
  #revision: string | undefined;
  #cause: Refusal | undefined;
  /** The edge has requested a `finalize` since the last checkpoint. */
  #finalizing = false;
  #ownRequests = 0;
  /** End of the input, or the last checkpoint after it, epoch ms. */
  #finishingAt: number | undefined;
  /** Model and language that the session is served by; `family` while the language is to be detected. */
  #target: Target;
  /** The current agent has sent everything. */
  #completed = false;
  #closed = false;

  constructor(facts: Resumable, buffer: ReplayBuffer, context: RequestContext, listener: UpstreamListener) {
    this.#facts = facts;
    this.#buffer = buffer;
    this.#context = context;
    this.#listener = listener;
    this.#revision = facts.revision;
    const { model, language, family, languages } = facts;
    this.#target = { model, language, family, languages };
    this.#filter = new EventFilter(facts.checkpoint?.index ?? 0);
  }

  /** Searches for the first agent. A resumed session also waits for a model that no roster knows. */
  start(admitted: Session, resumed: boolean): void {
    this.#admitted = admitted;
    const { session, until } = this.#facts;
    this.#finder = new AgentFinder(() => ({ session, until, ...this.#target }), admitted, this.#context, this);
    if (resumed) void this.#find(STREAM_MOVE_MS, 'refusals', []);
    else void this.#find(STREAM_FIND_MS, 'agents', []);
  }

  /** Time of the last message of the current agent, epoch ms. */
  get receivedAt(): number | undefined {
    return this.#current?.connection.receivedAt;
  }

  /** Name of the current or last agent. */
  get agent(): string | undefined {
    return this.#agent;
  }

  get target(): Target {
    return this.#target;
  }

  /** Revision that the session goes on with. */
  get revision(): string | undefined {
    return this.#revision;
  }

  /** Index of the first segment that was not sent to the client. */
  get nextSegment(): number {
    return this.#filter.next;
  }

  /** Whether the client has every word of the audio so far, and every answer. */
  get isComplete(): boolean {
    return this.#buffer.pendingRequests === 0 && this.#speech.isComplete(this.#buffer.clock.received);
  }

  get finishingAt(): number | undefined {
    return this.#finishingAt;
  }

  /** Requests `finalize` or `clear`. A request that was answered on an earlier connection is answered again. */
  request(type: RequestType, id: number): void {
    const state = this.#buffer.request(type, id);
    if (state === 'answered') this.#listener.onEvent({ type: type === 'finalize' ? 'finalized' : 'cleared', id });
    else if (state === 'full') this.#listener.onRefusal(tooManyRequests());
    else this.pump();
  }

  setOptions(options: StreamOptions): void {
    if (this.#buffer.setOptions(options)) this.pump();
    else this.#listener.onRefusal(tooManyRequests());
  }

  /** Ends the input. */
  finish(): void {
    this.#finishingAt = this.#now();
    this.#buffer.end();
    this.pump();
  }

  /**
   * Sends what the window allows. Requests a `finalize` when one open utterance fills the buffer, as it does with a wide
   * format or small messages: the checkpoint after it makes room.
   */
  pump(): void {
    const connection = this.#current?.connection;
    if (!connection) return;
    this.#sendAll(connection);
    if (!this.#buffer.needsFinalize) return;
    if (!this.#finalizing) {
      this.#finalizing = this.#buffer.request('finalize', FIRST_OWN_ID + this.#ownRequests++) === 'pending';
    }
    this.#sendAll(connection);
  }

  #sendAll(connection: AgentConnection): void {
    while (connection.isWritable) {
      const frame = this.#buffer.next();
      if (!frame) return;
      connection.send(frame);
    }
  }

  /** Replaces the current agent, which broke the protocol. */
  distrust(detail: string): void {
    this.#lose(refuse('pool_lost', undefined, detail));
  }

  /** Closes the current agent and ends the search for another one. */
  close(outcome: string): void {
    this.#closed = true;
    this.#search?.abort();
    const current = this.#current;
    this.#current = undefined;
    current?.finish(outcome, this.#completed ? 'healthy' : 'neutral');
    current?.connection.close();
  }

  onWritable(connection: AgentConnection): void {
    if (this.#isCurrent(connection)) this.pump();
  }

  onLost(connection: AgentConnection, refusal: Refusal): void {
    if (this.#isCurrent(connection)) this.#lose(refusal);
  }

  onError(error: unknown): void {
    this.#listener.onError(error);
  }

  onEvent(connection: AgentConnection, event: LinkEvent): void {
    if (this.#isCurrent(connection)) this.#receive(event);
  }

  #isCurrent(connection: AgentConnection): boolean {
    return connection === this.#current?.connection && !this.#closed;
  }

  #receive(event: LinkEvent): void {
    switch (event.type) {
      case 'keepalive':
        break;
      case 'ready':
        this.distrust('ready twice');
        break;
      case 'heard':
        if (this.#buffer.acknowledge(event.position, event.time, event.cut)) this.pump();
        else this.distrust('heard what was not sent');
        break;
      case 'checkpoint':
        this.#receiveCheckpoint(event);
        break;
      case 'drain':
        this.#replace();
        break;
      case 'final':
        this.#complete(event);
        break;
      case 'refusal':
        this.#receiveRefusal(refuse(event.reason, event.params, 'from the agent'));
        break;
      case 'finalized':
        if (this.#buffer.answer('finalize', event.id) && event.id < FIRST_OWN_ID) this.#forward(event);
        break;
      case 'language':
        this.#settleLanguage(event, this.#target.model);
        break;
      case 'cleared':
        if (this.#buffer.answer('clear', event.id)) this.#forward(event);
        break;
      default:
        this.#forward(event);
    }
  }

  #receiveCheckpoint({ position, time, index, state }: Checkpoint): void {
    const checkpoint = { position, time, index, state };
    if (this.#isPinned) this.#laterCheckpoint = checkpoint;
    else this.#commit(checkpoint);
  }

  #receiveRefusal(refusal: Refusal): void {
    const detected = readDetected(refusal);
    const { family } = this.#target;
    if (detected && family !== undefined) void this.#redirect(family, detected).catch((error) => this.onError(error));
    else if (mayFailOver(refusal)) this.#lose(refusal);
    else this.#listener.onRefusal(refusal);
  }

  /** Sends an event to the client, unless the client has it. */
  #forward(event: ClientEvent): void {
    const verdict = this.#filter.check(event);
    if (verdict === 'gap') this.distrust('a segment is missing');
    else if (verdict === 'new') {
      this.#speech.track(event);
      this.#listener.onEvent(event);
    }
  }

  #complete(final: Final): void {
    if (!this.#buffer.endSent) this.distrust('final before the end');
    else if (final.segments > this.#filter.next) this.distrust('a segment is missing');
    else {
      this.#completed = true;
      this.#buffer.clock.finish(final.durationSeconds);
      this.#listener.onFinal(final);
    }
  }

  #commit(checkpoint: Checkpoint): void {
    this.#failures = 0;
    const before = this.#buffer.start;
    if (checkpoint.index > this.#filter.next || !this.#buffer.commit(checkpoint)) {
      this.distrust('a checkpoint of something else');
      return;
    }
    this.#finalizing = false;
    if (this.#finishingAt !== undefined && checkpoint.position > before) this.#finishingAt = this.#now();
    this.#speech.commit(checkpoint.time);
    this.#listener.onCommit(checkpoint.time);
    this.pump();
  }

  /** Ends the detection. Returns false when the session may not go on in the language. */
  #settleLanguage({ language, confidence }: Detected, model: string): boolean {
    if (this.#target.family === undefined) return true;
    this.#target = { model, language, family: undefined };
    return this.#listener.onLanguage({ language, confidence, model });
  }

  /**
   * Moves the session to the member of a family that serves the detected language, from the last checkpoint.
   * The session outlasts an outage of the member as after a loss, but no refusal: no agent of the member has
   * accepted it.
   */
  async #redirect(family: string, detected: Detected): Promise<void> {
    const current = this.#current;
    if (!current || !this.#admitted) return;
    this.#search?.abort();
    this.#search = undefined;
    this.#current = undefined;
    current.finish('misdirected', 'neutral');
    current.connection.close();
    this.#laterCheckpoint = undefined;
    this.#isPinned = false;
    this.#listener.onLost();
    const { languages } = this.#target;
    const request = { name: family, language: detected.language, languages, live: true };
    const target = await resolveTarget(request, this.#admitted.claims, this.#context);
    if (this.#closed) return;
    if (!target.ok) this.#fail(target.refusal);
    else if (this.#settleLanguage(detected, target.value.model)) {
      this.#cause = refuse('misdirected');
      void this.#find(STREAM_MOVE_MS, 'outage', []);
    }
  }

  /** Drops the current agent, and searches for another one that goes on from the last checkpoint. */
  #lose(refusal: Refusal): void {
    const current = this.#current;
    if (!current || this.#closed) return;
    this.#current = undefined;
    current.finish(refusal.reason, 'failure');
    current.connection.close();
    this.#laterCheckpoint = undefined;
    this.#isPinned = false;
    this.#cause = refusal;
    this.#failures += 1;
    this.#listener.onLost();
    // The session may have ended with its agent.
    if (this.#closed) return;
    this.#losses += 1;
    const isHopeless = this.#failures > STREAM_MOVES_MAX || this.#losses > STREAM_AGENTS_MAX;
    if (isHopeless) this.#fail(refusal);
    // A search that began when the agent drained now lasts as long as one for a lost agent.
    else if (this.#search) this.#searchUntil = this.#now() + STREAM_MOVE_MS;
    else void this.#find(STREAM_MOVE_MS, 'refusals', [current.connection.agent]);
  }

  /** Searches for another agent while the current one, which drains, goes on. */
  #replace(): void {
    if (this.#search || !this.#current) return;
    void this.#find(STREAM_MOVE_MS, 'refusals', [this.#current.connection.agent]);
  }

  async #find(forMs: number, outlasts: Outlasts, excluded: readonly string[]): Promise<void> {
    const search = new AbortController();
    this.#search = search;
    this.#searchUntil = this.#now() + forMs;
    const until = () => this.#searchUntil;
    const { signal } = search;
    try {
      const revision = this.#revision;
      const open = () => this.#open();
      const found = await this.#finder?.find({ open, until, revision, outlasts, excluded, signal });
      const isCurrent = this.#search === search;
      if (isCurrent) this.#search = undefined;
      if (!found) return;
      if (!isCurrent) {
        if (found.ok) found.value.connection.close();
        return;
      }
      this.#isPinned = false;
      if (this.#closed) {
        if (found.ok) found.value.connection.close();
      } else if (found.ok) this.#adopt(found.value);
      else this.#findNone(found.refusal);
    } catch (error) {
      this.#listener.onError(error);
    }
  }

  /** Returns the message that opens the stream at a candidate, and pins the checkpoint in it. */
  #open(): OpenControl {
    this.#unpin();
    this.#isPinned = this.#current !== undefined;
    const { format } = this.#facts;
    const { model, language, family, languages } = this.#target;
    const { options, from } = this.#buffer.origin();
    const rest = {
      ...(language !== undefined && { language }),
      ...(family !== undefined && { detect: true, ...(languages && { languages: [...languages] }) }),
      ...(from && { from }),
    };
    return { type: 'open', v: 1, task: 'stream', model, format, options, ...rest };
  }

  /** Commits checkpoints again, beginning with the one that waits. */
  #unpin(): void {
    this.#isPinned = false;
    const later = this.#laterCheckpoint;
    this.#laterCheckpoint = undefined;
    if (later) this.#commit(later);
  }

  #adopt(found: FoundAgent): void {
    const before = this.#current;
    const hasMoved = this.#agent !== undefined;
    const { agent } = found.connection;
    this.#current = found;
    this.#laterCheckpoint = undefined;
    before?.finish('drained', 'neutral');
    before?.connection.close();
    if (hasMoved) this.#noteMove(agent, this.#cause?.reason ?? 'drain');
    this.#cause = undefined;
    this.#agent = agent;
    const { revision } = found.ready;
    const isOther = revision !== this.#revision;
    this.#revision = revision;
    this.#buffer.rewind();
    if (!this.#listener.onReady(found.ready)) return;
    if (hasMoved) this.#listener.onEvent({ type: 'moved', agent, ...(isOther && { revision }) });
    this.pump();
    found.connection.start();
  }

  #findNone(refusal: Refusal): void {
    // An agent that drains goes on as long as it can.
    if (this.#current) this.#unpin();
    else if (this.#agent === undefined || !mayFailOver(refusal)) this.#fail(refusal);
    else this.#fail(refuse('pool_lost', undefined, `no agent took over: ${refusal.reason}`));
  }

  #fail(refusal: Refusal): void {
    if (this.#agent !== undefined) this.#noteMove(undefined, refusal.reason);
    this.#listener.onRefusal(publicRefusal(refusal));
  }

  #noteMove(to: string | undefined, reason: string): void {
    const request = this.#context.id;
    const { tenant } = this.#facts;
    const time = this.#buffer.checkpoint?.time ?? 0;
    const from = this.#agent ?? '';
    this.#admitted?.note({ type: 'stream.roll', tenant, request, from, ...(to !== undefined && { to }), time, reason });
  }

  #now(): number {
    return this.#context.runtime.now();
  }
}

const tooManyRequests = () => refuse('frame_invalid', { rule: 'more was asked than can be kept while so much waits' });
