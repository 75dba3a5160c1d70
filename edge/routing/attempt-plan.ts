import type { Refusal } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { RequestContext } from '../context.ts';
import { knownAgents } from './agent-memory.ts';
import { isRealtime } from './cost.ts';
import { type Explanation, explain } from './decision.ts';
import { explainWithin } from './decisions.ts';
import { pick } from './pick.ts';
import { pickMirror } from './pick-mirror.ts';
import { afterFailure, attemptsLeft, earn, fullBudget, isWorthRetry } from './retry.ts';
import type { Attempt, RouteRequest } from './route.ts';
import { shed } from './shed.ts';
import { readSnapshots } from './snapshot.ts';

/** Retry budget of this isolate. Lost with it. */
let budget = fullBudget;

/** The agents that a request may try, in order, and the decision to retry. */
export class AttemptPlan {
  /** Attempts made. */
  made = 0;
  /** Receiver of a copy, where the request is mirrored. */
  mirror: Attempt | undefined;
  /** How the agents were considered; absent until then, and beyond `DECISIONS_PER_S`. */
  explanation: Explanation | undefined;
  readonly #route: RouteRequest;
  readonly #mayMirror: boolean;
  readonly #context: RequestContext;
  #attempts: readonly Attempt[] | undefined;

  constructor(route: RouteRequest, mayMirror: boolean, context: RequestContext) {
    this.#route = route;
    this.#mayMirror = mayMirror;
    this.#context = context;
  }

  /** Returns the next attempt. Refuses when no agent serves the request. */
  async next(): Promise<Result<Attempt>> {
    const picked = this.#attempts ? ok(this.#attempts) : await this.#pick();
    if (!picked.ok) return picked;
    this.made += 1;
    return ok(picked.value[this.made - 1] as Attempt);
  }

  /** Decides about a retry after a failed attempt. Returns the refusal for the caller, or nothing for another attempt. */
  async refusalAfter(refusal: Refusal, replayable: boolean, delivered: boolean): Promise<Refusal | undefined> {
    if (isWorthRetry(refusal) && replayable && !delivered) await this.#planAgain();
    const remaining = (this.#attempts?.length ?? 0) - this.made;
    const realtime = isRealtime(this.#route);
    const next = afterFailure({ refusal, made: this.made, remaining, replayable, delivered, realtime }, budget);
    if (!next.again) return next.refusal;
    budget = next.budget;
    return undefined;
  }

  async #pick(): Promise<Result<readonly Attempt[]>> {
    const { runtime } = this.#context;
    const snapshots = await this.#readSnapshots();
    const now = runtime.now();
    const explained = () => explain(this.#route, { snapshots, memory: knownAgents, now });
    this.explanation = explainWithin(now, explained);
    const busy = shed(this.#route, snapshots, now);
    if (busy) return no(busy);
    const picked = pick(this.#route, { snapshots, memory: knownAgents, now, random: runtime.random });
    if (!picked.ok) return picked;
    if (this.#mayMirror) this.mirror = pickMirror(this.#route, snapshots, now, runtime.random);
    this.#attempts = picked.value;
    budget = earn(budget);
    return picked;
  }

  async #planAgain(): Promise<void> {
    if (!this.#attempts) return;
    const { runtime } = this.#context;
    const snapshots = await this.#readSnapshots();
    const moment = { snapshots, memory: knownAgents, now: runtime.now(), random: runtime.random };
    const left = attemptsLeft(this.#attempts, this.made, this.#route, moment);
    this.#attempts = [...this.#attempts.slice(0, this.made), ...left];
  }

  /** Reads all zones: a model of another zone is refused in other words than one that does not exist. */
  async #readSnapshots() {
    const { settings, env, runtime } = this.#context;
    return readSnapshots(settings.zones, env.ROSTER, runtime);
  }
}
