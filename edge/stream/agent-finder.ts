import { ANSWER_START_MS } from '../../shared/pool/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { LinkControl } from '../../shared/stream/link.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import type { Session } from '../ledger/session.ts';
import { type Explanation, explain, type RouteDecision } from '../routing/decision.ts';
import { explainWithin, reportDecision } from '../routing/decisions.ts';
import { dialStream } from '../routing/dial-stream.ts';
import { finished, type Outcome, outcomeOfRefusal, type RouteMemory, started } from '../routing/memory.ts';
import { pick } from '../routing/pick.ts';
import type { Attempt } from '../routing/route.ts';
import { readSnapshots } from '../routing/snapshot.ts';
import { AgentConnection, type AgentListener, type AgentReady } from './agent-connection.ts';
import { isComplete, isTransient, mayFailOver, type Rosters, routeRequest, type StreamRoute } from './agent-route.ts';
import { STREAM_FINISH_MS } from './limits.ts';

/** First pause without a free agent; it doubles. */
const STREAM_REDIAL_MS = 250;
/** Longest pause between searches: registries are read each second. */
const STREAM_REDIAL_MAX_MS = 2_000;

/** Attempts of a search that its explanation lists. */
const TRIED_MAX = 16;

/** Health of agents as the streams of this isolate saw it; a hint. */
let memory: RouteMemory = new Map();

export type OpenControl = Extract<LinkControl, { type: 'open' }>;

/** A connection to an agent that is ready. */
export interface FoundAgent {
  readonly connection: AgentConnection;
  readonly ready: AgentReady;
  /** Records the outcome; the first call counts. */
  readonly finish: Finish;
}
type Finish = (outcome: string, health: Outcome) => void;

/**
 * Failures that a search outlasts until its deadline. `agents`: those of some agents. `outage`: also that of
 * all agents. `refusals`: also refusals that no other agent can help, as of a model that no roster knows.
 */
export type Outlasts = 'agents' | 'outage' | 'refusals';

export interface Search {
  /** Returns the message that opens the stream at an agent. */
  readonly open: () => OpenControl;
  /** Returns the deadline, epoch ms, which may change during the search. */
  readonly until: () => number;
  /** Revision that the session has begun with. */
  readonly revision: string | undefined;
  readonly outlasts: Outlasts;
  /** Agents that the first round leaves out. */
  readonly excluded: readonly string[];
  readonly signal: AbortSignal;
}

/** Route of a session, and its latest end, epoch ms. */
type FinderRoute = StreamRoute & { readonly until: number };

/** Finds agents for one session: picks candidates, dials them, and waits for `ready`. */
export class AgentFinder {
  readonly #route: () => FinderRoute;
  readonly #admitted: Session;
  readonly #context: RequestContext;
  readonly #listener: AgentListener;
  #attempts = 0;
  /** Explanation of the search that runs, and its attempts. */
  #explanation: Explanation | undefined;
  #tried: RouteDecision['attempts'] = [];

  /** `route` returns the current route. `listener`: of the connections. */
  constructor(route: () => FinderRoute, admitted: Session, context: RequestContext, listener: AgentListener) {
    this.#route = route;
    this.#admitted = admitted;
    this.#context = context;
    this.#listener = listener;
  }

  /**
   * Tries one candidate after the other, then all again after a pause, until the deadline or a failure that
   * the search does not outlast.
   */
  async find(search: Search): Promise<Result<FoundAgent>> {
    this.#explanation = undefined;
    this.#tried = [];
    const found = await this.#search(search);
    const outcome = found.ok ? 'served' : found.refusal.reason;
    if (this.#explanation) reportDecision(this.#explanation, this.#tried, outcome, this.#context);
    return found;
  }

  async #search(search: Search): Promise<Result<FoundAgent>> {
    const { until, outlasts, excluded, signal } = search;
    const { runtime } = this.#context;
    let pause: number = STREAM_REDIAL_MS;
    let tried = new Set(excluded);
    for (;;) {
      const round = await this.#tryAll(search, tried);
      if (round.ok || signal.aborted) return round;
      const { refusal } = round;
      if (!mayFailOver(refusal) && outlasts !== 'refusals') return round;
      if (outlasts === 'agents' && isTransient(refusal) && (await this.#knowsAllAgents())) return round;
      if (runtime.now() + pause >= until()) return round;
      const alarm = runtime.after(pause);
      await Promise.race([alarm.rings, aborted(signal)]);
      alarm.cancel();
      if (signal.aborted) return round;
      pause = Math.min(pause * 2, STREAM_REDIAL_MAX_MS);
      tried = new Set();
    }
  }

  /** Dials every candidate once. Returns the last agent's refusal, or the reason why there is no candidate. */
  async #tryAll(search: Search, tried: Set<string>): Promise<Result<FoundAgent>> {
    let last: Refusal | undefined;
    for (;;) {
      const picked = await this.#pick(tried, search);
      if (!picked.ok) return no(last ?? picked.refusal);
      const [attempt] = picked.value;
      if (!attempt || search.signal.aborted) return no(last ?? refuse('no_pool'));
      tried.add(attempt.entry.description.agent);
      const found = await this.#dial(attempt, search);
      if (found.ok || !mayFailOver(found.refusal)) return found;
      last = found.refusal;
    }
  }

  async #rosters(): Promise<Rosters> {
    const { settings, env, runtime } = this.#context;
    return { zones: settings.zones, snapshots: await readSnapshots(settings.zones, env.ROSTER, runtime) };
  }

  async #knowsAllAgents(): Promise<boolean> {
    return isComplete(await this.#rosters(), this.#admitted.claims, this.#context.runtime.now());
  }

  async #pick(exclude: ReadonlySet<string>, { revision }: Search): Promise<Result<Attempt[]>> {
    const { now, random } = this.#context.runtime;
    const { snapshots } = await this.#rosters();
    const { claims, subject } = this.#admitted;
    const route = { ...this.#route(), revision };
    const request = { ...routeRequest(route, claims, subject.class), exclude, place: this.#context.place };
    const at = now();
    this.#explanation ??= explainWithin(at, () => explain(request, { snapshots, memory, now: at }));
    return pick(request, { snapshots, memory, now: at, random });
  }

  async #dial(attempt: Attempt, { open, signal }: Search): Promise<Result<FoundAgent>> {
    const { settings, runtime, id } = this.#context;
    const { claims, subject } = this.#admitted;
    const { model, until } = this.#route();
    const { agent } = attempt.entry.description;
    this.#attempts += 1;
    const facts = {
      id: `${id}.${this.#attempts}`,
      agent,
      tenant: claims.tenant,
      class: subject.class,
      model,
      revision: attempt.model.revision,
      deadlineMs: Math.max(0, until - runtime.now()) + STREAM_FINISH_MS,
    };
    const finish = this.#account(attempt);
    const fail = (refusal: Refusal) => {
      finish(refusal.reason, signal.aborted ? 'neutral' : outcomeOfRefusal(refusal.reason));
      this.#noteTried(attempt, refusal.reason);
      return no(refusal);
    };
    const { traceparent } = this.#context.span ?? {};
    const answer = await dialStream({ entry: attempt.entry, facts, traceparent }, settings, runtime);
    if (!answer.ok) return fail(answer.refusal);
    if (answer.value.freshSeal) {
      const { suite } = answer.value;
      this.#admitted.note({ type: 'keys', tenant: claims.tenant, agent, action: 'setup', suite });
    }
    const connection = new AgentConnection(agent, answer.value, this.#listener, runtime.now);
    if (!signal.aborted) connection.send({ kind: 'control', control: open() });
    const stopped = aborted(signal).then(() => no(refuse('pool_lost', undefined, 'the search has ended')));
    const waiting = Promise.race([connection.ready, stopped]);
    const ready = await within(waiting, ANSWER_START_MS, runtime);
    if (ready !== late && ready.ok) {
      this.#noteTried(attempt, 'ready');
      return ok({ connection, ready: ready.value, finish });
    }
    connection.close();
    return fail(ready === late ? refuse('pool_lost', undefined, 'not ready in time') : ready.refusal);
  }

  #noteTried({ entry, why }: Attempt, outcome: string): void {
    const { agent, pool, zone } = entry.description;
    // A search of minutes repeats itself: the last attempts explain it.
    this.#tried = [...this.#tried, { agent, pool, zone, why, outcome }].slice(-TRIED_MAX);
  }

  /** Counts an attempt in the isolate's memory, and returns the function that records its outcome. */
  #account({ entry, why }: Attempt): Finish {
    const { agent, pool, zone } = entry.description;
    const attempt = this.#attempts;
    const { runtime, id } = this.#context;
    memory = started(memory, agent);
    let isFinished = false;
    return (outcome, health) => {
      if (isFinished) return;
      isFinished = true;
      const now = runtime.now();
      memory = finished(memory, agent, { outcome: health, ms: 0, now });
      const { tenant } = this.#admitted.claims;
      this.#admitted.note({ type: 'route', tenant, request: id, attempt, pool, agent, zone, why, outcome });
    };
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
