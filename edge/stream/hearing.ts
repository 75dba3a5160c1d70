import { type Refusal, refuse } from '../../shared/refusal.ts';
import type { Final } from '../../shared/speech/transcript.ts';
import type { Checkpoint, StreamOptions } from '../../shared/stream/link.ts';
import type { RequestContext } from '../context.ts';
import type { Session } from '../short/session.ts';
import { Agents, type Hearer, type Start } from './agents.ts';
import type { SessionEvent } from './dialect.ts';
import { EventFilter } from './event-filter.ts';
import { type Ready, toldClient, worthMoving } from './find.ts';
import type { Line } from './line.ts';
import type { ReplayBuffer } from './replay-buffer.ts';
import type { Resumable } from './resume-token.ts';
import { SpeechTracker } from './speech-tracker.ts';

/** Questions of the session itself have numbers above those of any client. */
const OWN = 2 ** 32;

type Heard = Parameters<Hearer['hear']>[0];

const crowded = () => refuse('frame_invalid', { rule: 'more was asked than can be kept while so much waits' });

/** Callbacks of a session about the events of its agents. */
export interface Listener {
  /** Sends an event to the client; each comes once. */
  tell(event: SessionEvent): void;
  /** An agent hears from now on; false when the session may not go on with it, and has ended. */
  reached(ready: Ready): boolean;
  lost(): void;
  /** Everything before `time` was said. */
  settled(time: number): void;
  /** Everything was said. */
  complete(final: Final): void;
  refuse(refusal: Refusal): void;
  broke(error: unknown): void;
}

/**
 * Carries the client's audio to the agent at work, and the events of agents to the client. An agent
 * that says what cannot be is lost, and another one hears everything again since the last checkpoint.
 */
export class Hearing implements Hearer {
  readonly feed: ReplayBuffer;
  readonly #facts: Resumable;
  readonly #listener: Listener;
  readonly #now: () => number;
  readonly #said: EventFilter;
  readonly #unsaid = new SpeechTracker();
  #agents: Agents | undefined;
  #relieving = false;
  #reliefs = 0;
  /** When the input ended, or something was settled after that, ms since 1970. */
  #finishing: number | undefined;

  constructor(facts: Resumable, feed: ReplayBuffer, now: () => number, listener: Listener) {
    this.#facts = facts;
    this.#now = now;
    this.#listener = listener;
    this.feed = feed;
    this.#said = new EventFilter(facts.checkpoint?.index ?? 0);
  }

  /** Searches for the first agent; `resumed`: it waits for a model that no roster knows at the moment. */
  begin(place: Session, context: RequestContext, resumed: boolean): void {
    const { session, model, language, until } = this.#facts;
    this.#agents = new Agents({ session, model, language, until }, place, context, this);
    this.#agents.begin(resumed);
  }

  /** The connection to the agent that is at work. */
  get line(): Line | undefined {
    return this.#agents?.line;
  }

  /** Name of the agent that is or was at work. */
  get agent(): string | undefined {
    return this.#agents?.last;
  }

  /** Index of the first segment that was not told. */
  get next(): number {
    return this.#said.next;
  }

  /** Everything that the client sent was transcribed, and everything that it asked for answered. */
  get isComplete(): boolean {
    return this.feed.pendingRequests === 0 && this.#unsaid.isComplete(this.feed.clock.received);
  }

  get finishing(): number | undefined {
    return this.#finishing;
  }

  /** A question that was answered before, on a connection that broke, is answered again. */
  ask(type: 'finalize' | 'clear', id: number): void {
    const asked = this.feed.request(type, id);
    if (asked === 'answered') this.#listener.tell({ type: type === 'finalize' ? 'finalized' : 'cleared', id });
    else if (asked === 'full') this.#listener.refuse(crowded());
    else this.pump();
  }

  change(options: StreamOptions): void {
    if (this.feed.setOptions(options)) this.pump();
    else this.#listener.refuse(crowded());
  }

  /** There will be no more audio. */
  finish(): void {
    this.#finishing = this.#now();
    this.feed.end();
    this.pump();
  }

  /** Sends what may be sent now. */
  pump(): void {
    const line = this.#agents?.line;
    if (!line) return;
    this.#sendAll(line);
    if (!this.feed.needsFinalize) return;
    this.#relieve();
    this.#sendAll(line);
  }

  #sendAll(line: Line): void {
    for (let portion = this.feed.next(); portion; portion = this.feed.next()) line.send(portion);
  }

  /** Lets go of whatever agent there is. */
  end(said: string): void {
    this.#agents?.end(said);
  }

  /** An agent that says what cannot be is not believed any more. */
  distrust(detail: string): void {
    this.#agents?.lose(refuse('pool_lost', undefined, detail));
  }

  start(): Start {
    const { model, language, format } = this.#facts;
    const { options, from } = this.feed.origin();
    const said = { ...(language !== undefined && { language }), ...(from && { from }) };
    return { type: 'open', v: 1, task: 'stream', model, format, options, ...said };
  }

  time(): number {
    return this.feed.checkpoint?.time ?? 0;
  }

  reached(ready: Ready, moved: boolean): boolean {
    this.feed.rewind();
    if (!this.#listener.reached(ready)) return false;
    if (moved) this.#listener.tell({ type: 'moved', agent: ready.agent });
    this.pump();
    return true;
  }

  lost(): void {
    this.#listener.lost();
  }

  failed(refusal: Refusal): void {
    this.#listener.refuse(toldClient(refusal));
  }

  broke(error: unknown): void {
    this.#listener.broke(error);
  }

  hear(event: Heard): void {
    switch (event.type) {
      case 'keepalive':
      case 'drain':
        return;
      case 'ready':
        this.distrust('ready twice');
        return;
      case 'heard':
        if (!this.feed.acknowledge(event.position, event.time, event.cut)) {
          this.distrust('heard what was not sent');
          return;
        }
        this.pump();
        return;
      case 'final':
        this.#complete(event);
        return;
      case 'refusal': {
        const refusal = refuse(event.reason, event.params, 'from the agent');
        if (worthMoving(refusal)) this.#agents?.lose(refusal);
        else this.#listener.refuse(refusal);
        return;
      }
      case 'finalized':
        if (this.feed.answer('finalize', event.id) && event.id < OWN) this.#judge(event);
        return;
      case 'cleared':
        if (this.feed.answer('clear', event.id)) this.#judge(event);
        return;
      default:
        this.#judge(event);
    }
  }

  settle(checkpoint: Checkpoint): void {
    const before = this.feed.start;
    if (checkpoint.index > this.#said.next || !this.feed.commit(checkpoint)) {
      this.distrust('a checkpoint of something else');
      return;
    }
    this.#relieving = false;
    if (this.#finishing !== undefined && checkpoint.position > before) this.#finishing = this.#now();
    this.#unsaid.commit(checkpoint.time);
    this.#listener.settled(checkpoint.time);
    this.pump();
  }

  /** Ends the open utterance, which fills the buffer with a wide format or small messages: the agent settles it. */
  #relieve(): void {
    if (!this.#relieving) this.#relieving = this.feed.request('finalize', OWN + this.#reliefs++) === 'pending';
  }

  #judge(event: Parameters<EventFilter['check']>[0]): void {
    const judged = this.#said.check(event);
    if (judged === 'gap') this.distrust('a segment is missing');
    else if (judged === 'new') {
      this.#unsaid.track(event);
      this.#listener.tell(event);
    }
  }

  #complete(final: Final): void {
    if (!this.feed.endSent) this.distrust('final before the end');
    else if (final.segments > this.#said.next) this.distrust('a segment is missing');
    else {
      this.feed.clock.finish(final.durationSeconds);
      this.#listener.complete(final);
    }
  }
}
