import { limits } from '../../shared/limits.ts';
import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { type Outcome, outcomeOfRefusal } from '../../shared/pool/memory.ts';
import { pickMirror } from '../../shared/pool/mirror.ts';
import { type Attempt, pick, type RouteRequest } from '../../shared/pool/pick.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { RequestContext } from '../context.ts';
import { dial, type Line } from '../pool/dial.ts';
import { dialShort } from '../pool/dial-short.ts';
import { readSnapshots } from '../pool/snapshot.ts';
import { agentFinished, agentStarted, knownAgents } from './agents.ts';
import { Answer, agentRefusal, type Ended, type ReadEvent } from './answer.ts';
import { answerTimeLeft, attemptsLeft } from './attempts-left.ts';
import type { CallerBody } from './body.ts';
import type { Hints } from './hints.ts';
import { afterFailure, earn, fullBudget, isWorthRetry } from './retry.ts';
import { hasRoomForCopy, sendCopy } from './send-copy.ts';
import type { Session } from './session.ts';

/** AES-256-GCM, the suite the edge seals with. */
const SUITE = 0x0005;

/** Retries that this isolate may still make. Lost with it. */
let budget = fullBudget;

/** What is asked of an agent. */
export interface Errand<E> {
  readonly task: RouteRequest['task'];
  readonly hints: Pick<Hints, 'model' | 'language'>;
  /** Record 0 of the request. */
  readonly head: Readonly<Record<string, unknown>>;
  /** Where alone it can be done; absent: in any zone of the tenant. */
  readonly zones?: readonly string[] | undefined;
  /** What keeps several requests with one agent. */
  readonly sticky?: string | undefined;
  readonly read: ReadEvent<E>;
  /** What an event says, of a task whose requests may be copied for revisions on trial. */
  readonly textOf?: ((event: E) => string | undefined) | undefined;
}

type Talking<E> = Exclude<E, { type: 'refusal' }>;

/** A call to one agent that answered. */
interface Talk<E extends { readonly type: string }> {
  readonly attempt: Attempt;
  readonly answer: Answer<E>;
  readonly began: number;
  /** Ends the call and the agent's work on it, where ending the answer would not. */
  readonly hangUp: AbortController | undefined;
}

/** Who gets a copy, and what was served until now. */
interface Copied {
  readonly to: Attempt;
  text: string;
}

/**
 * The events of whichever agent serves the request. While the caller has seen nothing and the body is still whole, a
 * lost agent is replaced by another; its `ready` then starts the events over.
 */
export class Relay<E extends { readonly type: string } | Ended> {
  /** The caller has seen part of an answer: no other agent can take over. */
  delivered = false;
  /** Called when it is closed. */
  over: (() => void) | undefined;
  /** The agent that was asked last, for the record. */
  agent: string | undefined;
  readonly #session: Session;
  readonly #body: CallerBody;
  readonly #errand: Errand<E>;
  readonly #context: RequestContext;
  #attempts: readonly Attempt[] | undefined;
  #made = 0;
  /** Time spent on calls that no agent answered, ms. */
  #dialledMs = 0;
  #closed = false;
  #dialling: AbortController | undefined;
  #talk: Talk<E> | undefined;
  #copy: Copied | undefined;

  constructor(session: Session, body: CallerBody, errand: Errand<E>, context: RequestContext) {
    this.#session = session;
    this.#body = body;
    this.#errand = errand;
    this.#context = context;
  }

  /** The next event; at once, where it is here already. A refusal is the end, and so is `final`. */
  next(): Result<Talking<E>> | Promise<Result<Talking<E>>> {
    const held = this.#closed ? undefined : this.#talk?.answer.held();
    if (!held) return this.#next(undefined);
    const event = toTalk(held);
    // No time has passed since the last one.
    return event.ok ? this.#tell(event, false) : this.#next(event);
  }

  async #next(first: Result<Talking<E>> | undefined): Promise<Result<Talking<E>>> {
    let given = first;
    for (;;) {
      if (this.#closed) return no(gone);
      const talk = this.#talk ? ok(this.#talk) : await this.#call();
      const event = given ?? (talk.ok ? toTalk(talk.value.answer.held() ?? (await this.#listen(talk.value))) : talk);
      given = undefined;
      if (event.ok) return this.#tell(event, true);
      // The caller's own fault is told as such, whatever the agent made of it.
      const cause = this.#body.refusal ?? event.refusal;
      this.#finish(cause.reason, this.#body.refusal ? 'neutral' : outcomeOfRefusal(cause.reason));
      const next = afterFailure(await this.#failure(cause), budget);
      if (!next.again) {
        this.close(next.refusal.reason);
        return no(next.refusal);
      }
      budget = next.budget;
    }
  }

  #tell(event: { readonly ok: true; readonly value: Talking<E> }, waited: boolean): Result<Talking<E>> {
    if (waited) this.#session.stillAtWork();
    if (this.#copy) this.#copy.text += textAfter(this.#copy.text, this.#errand.textOf?.(event.value));
    if (event.value.type === 'final') this.#finish('served', 'healthy');
    return event;
  }

  /** Stops the agent's work, if it has not finished; `why` goes into the record. */
  close(why: string): void {
    this.#closed = true;
    this.over?.();
    this.#finish(why, 'neutral');
    this.#dialling?.abort();
    this.#body.cancel();
  }

  async #failure(refusal: Refusal) {
    if (isWorthRetry(refusal) && this.#body.replayable && !this.delivered) await this.#planAgain();
    const remaining = (this.#attempts?.length ?? 0) - this.#made;
    const { replayable } = this.#body;
    return { refusal, made: this.#made, remaining, replayable, delivered: this.delivered };
  }

  async #planAgain(): Promise<void> {
    if (!this.#attempts) return;
    const { surroundings, settings, env } = this.#context;
    const snapshots = await readSnapshots(settings.zones, env.ROSTER, surroundings);
    const moment = { snapshots, memory: knownAgents, now: surroundings.now(), random: surroundings.random };
    const left = attemptsLeft(this.#attempts, this.#made, this.#route(), moment);
    this.#attempts = [...this.#attempts.slice(0, this.#made), ...left];
  }

  async #call(): Promise<Result<Talk<E>>> {
    const { surroundings, settings, id } = this.#context;
    if (!this.#attempts) {
      const picking = this.#pick();
      const picked = picking instanceof Promise ? await picking : picking;
      if (!picked.ok) return picked;
      this.#attempts = picked.value;
      budget = earn(budget);
    }
    const attempt = this.#attempts[this.#made] as Attempt;
    this.#made += 1;
    const { agent } = attempt.entry.description;
    this.agent = agent;
    const began = surroundings.now();
    const pieces = this.#body.ended ? this.#body.handOver() : await this.#body.gather();
    const short = attempt.entry.description.lanes && pieces?.length === 1 ? asShort(pieces[0]) : undefined;
    // A body that leaves at once needs nobody to stop it.
    const hangUp = pieces ? undefined : new AbortController();
    agentStarted(agent);
    const { claims, subject } = this.#session;
    const call = {
      entry: attempt.entry,
      facts: {
        id: `${id}.${this.#made}`,
        agent,
        tenant: claims.tenant,
        class: subject.class,
        model: this.#errand.hints.model,
      },
      head: this.#errand.head,
      body: pieces ?? this.#body.open(),
      signal: hangUp?.signal,
      startMs: answerTimeLeft(this.#dialledMs),
    };
    this.#dialling = hangUp;
    const failed = ({ reason }: Refusal) => {
      this.#dialling = undefined;
      hangUp?.abort();
      const now = surroundings.now();
      this.#dialledMs += now - began;
      this.#note(attempt, reason, now);
      agentFinished(agent, this.#closed ? 'neutral' : outcomeOfRefusal(reason), 0, now);
    };
    let line: Result<Line>;
    try {
      if (this.#closed) line = no(gone);
      else if (short) line = await dialShort(call, short, began, settings, surroundings);
      else line = await dial(call, settings, surroundings);
    } catch (error) {
      failed(refuse('internal'));
      throw error;
    }
    if (!line.ok) {
      failed(line.refusal);
      return line;
    }
    this.#dialling = undefined;
    const answer = new Answer(line.value, this.#errand.read, surroundings);
    if (this.#closed) {
      answer.close();
      failed(gone);
      return no(gone);
    }
    if (line.value.freshSeal) {
      this.#session.note({ type: 'keys', tenant: claims.tenant, agent, action: 'setup', suite: line.value.suite });
    }
    this.#talk = { attempt, answer, began, hangUp };
    return ok(this.#talk);
  }

  #pick(): Result<Attempt[]> | Promise<Result<Attempt[]>> {
    const { settings, env, surroundings } = this.#context;
    // All zones are read, so that a model that lives elsewhere is told apart from one that does not exist.
    const reading = readSnapshots(settings.zones, env.ROSTER, surroundings);
    return reading instanceof Promise ? reading.then((read) => this.#pickFrom(read)) : this.#pickFrom(reading);
  }

  #route(): RouteRequest {
    const { claims, subject } = this.#session;
    const { task, sticky, hints, zones = claims.zones } = this.#errand;
    return {
      tenant: claims.tenant,
      // Each recording is a session of its own: gates count it as one sample (`rates.ts`).
      session: this.#context.id,
      ...hints,
      task,
      sticky,
      allowed: claims.languages,
      zones,
      suite: SUITE,
      class: subject.class,
    };
  }

  #pickFrom(snapshots: readonly Snapshot[]): Result<Attempt[]> {
    const { surroundings } = this.#context;
    const { claims } = this.#session;
    const request = this.#route();
    const now = surroundings.now();
    const picked = pick(request, snapshots, knownAgents, now, surroundings.random);
    const mayCopy = picked.ok && this.#errand.textOf && claims.mirror !== 'forbidden';
    const to = mayCopy ? pickMirror(request, snapshots, now, surroundings.random) : undefined;
    if (to) this.#copy = { to, text: '' };
    return picked;
  }

  /** What was served goes to a revision on trial, too, as far as there is room, and the record says so. */
  #sendCopy({ to, text }: Copied, now: number): void {
    const body = this.#body.pieces();
    if (!body || Buffer.byteLength(text) > limits.mirrorTextBytes.value || !hasRoomForCopy(now)) return;
    this.#note(to, 'mirrored', now);
    const { claims } = this.#session;
    const { hints, head } = this.#errand;
    const recorded = () => this.#session.ended;
    this.#context.waitUntil(sendCopy({ to, claims, model: hints.model, head, body, text, recorded }, this.#context));
  }

  #listen({ answer }: Talk<E>): Promise<Result<E>> {
    const next = answer.next();
    return this.#body.ended ? next : Promise.race([next, this.#body.failed.then(no)]);
  }

  /** Ends the talk with the current agent, if there is one, and remembers how it went. */
  #finish(said: string, outcome: Outcome): void {
    const talk = this.#talk;
    if (!talk) return;
    this.#talk = undefined;
    const { surroundings, waitUntil } = this.#context;
    const now = surroundings.now();
    const worked = now - Math.max(talk.began, this.#body.endedAt ?? talk.began);
    agentFinished(talk.attempt.entry.description.agent, outcome, worked, now);
    this.#note(talk.attempt, said, now);
    if (said === 'served') {
      if (this.#copy) this.#sendCopy(this.#copy, now);
      const draining = talk.answer.drain();
      if (draining) waitUntil(draining);
      return;
    }
    talk.answer.close();
    talk.hangUp?.abort();
  }

  #note({ entry, why }: Attempt, outcome: string, now: number): void {
    const { pool, agent, zone } = entry.description;
    const { tenant } = this.#session.claims;
    const request = this.#context.id;
    this.#session.note({ type: 'route', tenant, request, attempt: this.#made, pool, agent, zone, why, outcome }, now);
  }
}

const asShort = (piece: Uint8Array | undefined): Uint8Array | undefined =>
  piece && piece.length <= limits.lanePackBytes.value ? piece : undefined;

const textAfter = (before: string, more: string | undefined): string =>
  more === undefined ? '' : before === '' ? more : ` ${more}`;

const gone = refuse('pool_lost', undefined, 'nobody waits for the answer');

function toTalk<E extends { readonly type: string }>(event: Result<E>): Result<Talking<E>> {
  if (!event.ok) return event;
  const { value } = event;
  return isRefusal(value) ? no(agentRefusal(value)) : ok(value as Talking<E>);
}

const isRefusal = (event: { readonly type: string }): event is Extract<Ended, { type: 'refusal' }> =>
  event.type === 'refusal';
