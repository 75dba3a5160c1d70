import { finished, type Outcome, outcomeOfRefusal, type RouteMemory, started } from '../../shared/pool/memory.ts';
import { type Attempt, pick } from '../../shared/pool/pick.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { AnswerEvent } from '../../shared/speech/transcript.ts';
import type { RequestContext } from '../context.ts';
import { dial, type Line } from '../pool/dial.ts';
import { readSnapshots } from '../pool/snapshot.ts';
import { Answer, agentRefusal } from './answer.ts';
import type { CallerBody } from './body.ts';
import type { Hints } from './hints.ts';
import { afterFailure, earn, fullBudget } from './retry.ts';
import type { Session } from './session.ts';

/** AES-256-GCM, the suite the edge seals with. */
const SUITE = 0x0005;

/** What this isolate remembers of agents and retries. Plain data; lost with the isolate, and only ever a hint. */
let memory: RouteMemory = new Map();
let budget = fullBudget;

/** A call to one agent that answered. */
interface Talk {
  readonly attempt: Attempt;
  readonly answer: Answer;
  readonly began: number;
  /** Ends the call and the agent's work on it. */
  readonly hangUp: AbortController;
}

/**
 * The events of whichever agent serves the request. While the caller has seen nothing and the body is still whole, a
 * lost agent is replaced by another; its `ready` then starts the events over.
 */
export class Relay {
  /** The caller has seen part of an answer: no other agent can take over. */
  delivered = false;
  /** The agent that was asked last, for the record. */
  agent: string | undefined;
  readonly #session: Session;
  readonly #body: CallerBody;
  readonly #head: Readonly<Record<string, unknown>>;
  readonly #hints: Hints;
  readonly #context: RequestContext;
  #attempts: readonly Attempt[] | undefined;
  #made = 0;
  #closed = false;
  #dialling: AbortController | undefined;
  #talk: Talk | undefined;

  constructor(
    session: Session,
    body: CallerBody,
    hints: Hints,
    head: Readonly<Record<string, unknown>>,
    context: RequestContext,
  ) {
    this.#session = session;
    this.#body = body;
    this.#hints = hints;
    this.#head = head;
    this.#context = context;
  }

  /** The next event. A refusal is the end, and so is `final`. */
  async next(): Promise<Result<Exclude<AnswerEvent, { type: 'refusal' }>>> {
    for (;;) {
      if (this.#closed) return no(gone);
      const talk = this.#talk ? ok(this.#talk) : await this.#call();
      const event = talk.ok ? await this.#listen(talk.value) : talk;
      if (event.ok) {
        this.#session.stillAtWork();
        if (event.value.type === 'final') this.#finish('served', 'healthy');
        return event;
      }
      // The caller's own fault is told as such, whatever the agent made of it.
      const cause = this.#body.refusal ?? event.refusal;
      this.#finish(cause.reason, this.#body.refusal ? 'neutral' : outcomeOfRefusal(cause.reason));
      const next = afterFailure(this.#failure(cause), budget);
      if (!next.again) {
        this.close(next.refusal.reason);
        return no(next.refusal);
      }
      budget = next.budget;
    }
  }

  /** Stops the agent's work, if it has not finished; `why` goes into the record. */
  close(why: string): void {
    this.#closed = true;
    this.#finish(why, 'neutral');
    this.#dialling?.abort();
    this.#body.cancel();
  }

  #failure(refusal: Refusal) {
    const remaining = (this.#attempts?.length ?? 0) - this.#made;
    const { replayable } = this.#body;
    return { refusal, made: this.#made, remaining, replayable, delivered: this.delivered };
  }

  async #call(): Promise<Result<Talk>> {
    const { surroundings, settings, id } = this.#context;
    if (!this.#attempts) {
      const picked = await this.#pick();
      if (!picked.ok) return picked;
      this.#attempts = picked.value;
      budget = earn(budget);
    }
    const attempt = this.#attempts[this.#made] as Attempt;
    this.#made += 1;
    const { agent } = attempt.entry.description;
    this.agent = agent;
    const began = surroundings.now();
    const hangUp = new AbortController();
    memory = started(memory, agent);
    const { claims, subject } = this.#session;
    const call = {
      entry: attempt.entry,
      facts: {
        id: `${id}.${this.#made}`,
        agent,
        tenant: claims.tenant,
        class: subject.class,
        model: this.#hints.model,
      },
      head: this.#head,
      body: this.#body.open(),
      signal: hangUp.signal,
    };
    this.#dialling = hangUp;
    const failed = ({ reason }: Refusal) => {
      this.#dialling = undefined;
      hangUp.abort();
      this.#note(attempt, reason);
      const outcome = this.#closed ? 'neutral' : outcomeOfRefusal(reason);
      memory = finished(memory, agent, outcome, 0, surroundings.now());
    };
    let line: Result<Line>;
    try {
      line = this.#closed ? no(gone) : await dial(call, settings, surroundings);
    } catch (error) {
      failed(refuse('internal'));
      throw error;
    }
    if (!line.ok) {
      failed(line.refusal);
      return line;
    }
    this.#dialling = undefined;
    if (line.value.freshSeal) {
      this.#session.note({ type: 'keys', tenant: claims.tenant, agent, action: 'setup', suite: line.value.suite });
    }
    this.#talk = { attempt, answer: new Answer(line.value, surroundings), began, hangUp };
    return ok(this.#talk);
  }

  async #pick(): Promise<Result<Attempt[]>> {
    const { settings, env, surroundings, id } = this.#context;
    // All zones are read, so that a model that lives elsewhere is told apart from one that does not exist.
    const snapshots = await readSnapshots(settings.zones, env.ROSTER, surroundings);
    const { claims, subject } = this.#session;
    const { model, language } = this.#hints;
    const request = {
      tenant: claims.tenant,
      session: claims.subject ?? id,
      task: 'transcribe' as const,
      model,
      language,
      allowed: claims.languages,
      zones: claims.zones,
      suite: SUITE,
      class: subject.class,
    };
    return pick(request, snapshots, memory, surroundings.now(), surroundings.random);
  }

  async #listen({ answer }: Talk): Promise<Result<Exclude<AnswerEvent, { type: 'refusal' }>>> {
    const event = await Promise.race([answer.next(), this.#body.failed.then(no)]);
    if (!event.ok) return event;
    const { value } = event;
    return value.type === 'refusal' ? no(agentRefusal(value)) : ok(value);
  }

  /** Ends the talk with the current agent, if there is one, and remembers how it went. */
  #finish(said: string, outcome: Outcome): void {
    const talk = this.#talk;
    if (!talk) return;
    this.#talk = undefined;
    const { surroundings, waitUntil } = this.#context;
    const now = surroundings.now();
    const worked = now - Math.max(talk.began, this.#body.endedAt ?? talk.began);
    memory = finished(memory, talk.attempt.entry.description.agent, outcome, worked, now);
    this.#note(talk.attempt, said);
    if (said === 'served') {
      waitUntil(talk.answer.drain());
      return;
    }
    talk.answer.close();
    talk.hangUp.abort();
  }

  #note({ entry, why }: Attempt, outcome: string): void {
    const { pool, agent, zone } = entry.description;
    const { tenant } = this.#session.claims;
    const request = this.#context.id;
    this.#session.note({ type: 'route', tenant, request, attempt: this.#made, pool, agent, zone, why, outcome });
  }
}

const gone = refuse('pool_lost', undefined, 'nobody waits for the answer');
