import { limits } from '../../shared/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import type { Checkpoint, LinkControl, LinkEvent } from '../../shared/stream/link.ts';
import type { RequestContext } from '../context.ts';
import type { Session } from '../short/session.ts';
import { Finder, type Reached, type Ready, type Wanted, worthMoving } from './find.ts';
import type { Line } from './line.ts';

export type Start = Extract<LinkControl, { type: 'open' }>;

/** Callbacks of a session about its agents. */
export interface Hearer {
  /** How the stream begins at an agent that begins now. */
  start(): Start;
  /** Another agent goes on; false when it may not, which ended the session. */
  reached(ready: Ready, moved: boolean): boolean;
  /** An event of the agent that is at work, but for checkpoints. */
  hear(event: Exclude<LinkEvent, { type: 'checkpoint' }>): void;
  settle(checkpoint: Checkpoint): void;
  /** The agent was lost; another one is being looked for. */
  lost(refusal: Refusal): void;
  /** The stream has no agent any more. */
  failed(refusal: Refusal): void;
  /** Time of the stream at which another agent would begin, seconds. */
  time(): number;
  broke(error: unknown): void;
}

/** The agents of one session, one after the other: found, watched, and replaced from the last checkpoint. */
export class Agents {
  readonly #finder: Finder;
  readonly #hearer: Hearer;
  readonly #place: Session;
  readonly #context: RequestContext;
  #reached: Reached | undefined;
  #finding: AbortController | undefined;
  /** Deadline of the current search, ms since 1970. */
  #until = 0;
  /** An agent that may take over was told to begin at the last checkpoint: until it does, no other one counts. */
  #pinned = false;
  #later: Checkpoint | undefined;
  /** Agents that failed in a row without settling anything. */
  #failures = 0;
  /** How often an agent was lost. */
  #rolls = 0;
  /** The last agent, and why it was lost. */
  #last: string | undefined;
  #cause: Refusal | undefined;
  #over = false;

  constructor(wanted: Wanted, place: Session, context: RequestContext, hearer: Hearer) {
    this.#hearer = hearer;
    this.#place = place;
    this.#context = context;
    this.#finder = new Finder(wanted, place, context, {
      hear: (line, event) => this.#guard(line, () => this.#hear(event)),
      lost: (line, refusal) => this.#guard(line, () => this.lose(refusal)),
      broke: (error) => hearer.broke(error),
    });
  }

  /** The connection to the agent that is at work. */
  get line(): Line | undefined {
    return this.#reached?.line;
  }

  /** Name of the agent that is or was at work. */
  get last(): string | undefined {
    return this.#last;
  }

  /** Searches for the first agent. With `patient` it waits for a model that no roster knows at the moment. */
  begin(patient: boolean): void {
    void this.#find(patient ? limits.streamMoveMs.value : limits.streamFindMs.value, patient, []);
  }

  /** The agent is of no use any more; another one takes over from the last checkpoint. */
  lose(refusal: Refusal): void {
    const reached = this.#reached;
    if (!reached || this.#over) return;
    this.#reached = undefined;
    reached.over(refusal.reason, true);
    reached.line.close();
    this.#later = undefined;
    this.#pinned = false;
    this.#cause = refusal;
    this.#failures += 1;
    this.#hearer.lost(refusal);
    // The session may have ended with its agent.
    if (this.#over) return;
    this.#rolls += 1;
    const hopeless = this.#failures > limits.streamMoves.value || this.#rolls > limits.streamRolls.value;
    if (hopeless) this.#fail(refusal);
    // A search that began when the agent drained now lasts as long as one for a lost agent.
    else if (this.#finding) this.#until = this.#context.surroundings.now() + limits.streamMoveMs.value;
    else void this.#find(limits.streamMoveMs.value, true, [reached.line.agent]);
  }

  /** Lets go of whatever agent there is. */
  end(said: string): void {
    this.#over = true;
    this.#finding?.abort();
    const reached = this.#reached;
    this.#reached = undefined;
    reached?.over(said, false);
    reached?.line.close();
  }

  #guard(line: Line, work: () => void): void {
    if (line !== this.#reached?.line || this.#over) return;
    try {
      work();
    } catch (error) {
      this.#hearer.broke(error);
    }
  }

  #hear(event: LinkEvent): void {
    if (event.type === 'checkpoint') {
      const { type: _, ...checkpoint } = event;
      if (this.#pinned) this.#later = checkpoint;
      else this.#settle(checkpoint);
    } else if (event.type === 'drain') this.#replace();
    else this.#hearer.hear(event);
  }

  #settle(checkpoint: Checkpoint): void {
    this.#failures = 0;
    this.#hearer.settle(checkpoint);
  }

  /** The agent is about to stop: another one is looked for while this one goes on. */
  #replace(): void {
    if (this.#finding || !this.#reached) return;
    void this.#find(limits.streamMoveMs.value, true, [this.#reached.line.agent]);
  }

  async #find(forMs: number, patient: boolean, excluded: readonly string[]): Promise<void> {
    const finding = new AbortController();
    this.#finding = finding;
    this.#until = this.#context.surroundings.now() + forMs;
    const search = { until: () => this.#until, patient, excluded };
    try {
      const found = await this.#finder.find(() => this.#start(), search, finding.signal);
      this.#finding = undefined;
      this.#pinned = false;
      if (this.#over) {
        if (found.ok) found.value.line.close();
      } else if (found.ok) this.#reach(found.value);
      else this.#findNone(found.refusal);
    } catch (error) {
      this.#hearer.broke(error);
    }
  }

  #start(): Start {
    this.#release();
    this.#pinned = this.#reached !== undefined;
    return this.#hearer.start();
  }

  /** Lets checkpoints count again, beginning with the one that came meanwhile. */
  #release(): void {
    this.#pinned = false;
    const later = this.#later;
    this.#later = undefined;
    if (later) this.#settle(later);
  }

  #reach(found: Reached): void {
    const before = this.#reached;
    const moved = this.#last !== undefined;
    this.#reached = found;
    this.#later = undefined;
    before?.over('drained', false);
    before?.line.close();
    if (moved) this.#noteRoll(found.line.agent, this.#cause?.reason ?? 'drain');
    this.#cause = undefined;
    this.#last = found.line.agent;
    this.#hearer.reached(found.ready, moved);
  }

  #findNone(refusal: Refusal): void {
    // An agent that drains goes on as long as it can.
    if (this.#reached) this.#release();
    else this.#fail(this.#last !== undefined && worthMoving(refusal) ? notTakenOver(refusal) : refusal);
  }

  #fail(refusal: Refusal): void {
    if (this.#last !== undefined) this.#noteRoll(undefined, refusal.reason);
    this.#hearer.failed(refusal);
  }

  #noteRoll(to: string | undefined, reason: string): void {
    const { tenant } = this.#place.claims;
    const request = this.#context.id;
    const [from, time] = [this.#last ?? '', this.#hearer.time()];
    this.#place.note({ type: 'stream.roll', tenant, request, from, ...(to !== undefined && { to }), time, reason });
  }
}

const notTakenOver = ({ reason }: Refusal): Refusal => refuse('pool_lost', undefined, `no agent took over: ${reason}`);
