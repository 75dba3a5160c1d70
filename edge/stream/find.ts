import { limits } from '../../shared/limits.ts';
import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { finished, outcomeOfRefusal, type RouteMemory, started } from '../../shared/pool/memory.ts';
import { type Attempt, candidatesFor, foresee, pick, type RouteRequest } from '../../shared/pool/pick.ts';
import { type Reason, type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import type { LinkControl, LinkEvent } from '../../shared/stream/link.ts';
import type { Claims, RequestClass } from '../../shared/tenant/claims.ts';
import { late, within } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { dialStream } from '../pool/dial-stream.ts';
import { haveGathered } from '../pool/gathered.ts';
import { readSnapshots } from '../pool/snapshot.ts';
import type { Session } from '../short/session.ts';
import { Line } from './line.ts';

/** AES-256-GCM, the suite the edge seals with. */
const SUITE = 0x0005;

/** Health of agents as this isolate's streams saw it. Plain data, and only a hint. */
let memory: RouteMemory = new Map();

/** Another agent, or the same one a moment later, may well do what this one did not. */
const elsewhere: ReadonlySet<Reason> = new Set([
  'pool_lost',
  'pool_busy',
  'no_pool',
  'misdirected',
  'seal_broken',
  'attestation_invalid',
  'ticket_invalid',
  'ticket_replayed',
  'engine_failed',
  'deadline_passed',
  'storage_full',
  'internal',
]);

/** Is it worth trying another agent after this refusal. */
export const worthMoving = ({ reason }: Refusal): boolean => elsewhere.has(reason);

/** Returns the refusal that a client reads when no agent was found. */
export function toldClient(refusal: Refusal): Refusal {
  const internal = ['ticket_invalid', 'ticket_replayed', 'misdirected', 'seal_broken', 'attestation_invalid'];
  if (!internal.includes(refusal.reason)) return refusal;
  return refuse('pool_lost', undefined, [refusal.reason, refusal.detail].filter(Boolean).join(': '));
}

export type Ready = Extract<LinkEvent, { type: 'ready' }>;

/** An agent that is ready to hear. */
export interface Reached {
  readonly line: Line;
  readonly ready: Ready;
  /** Notes how it went with the agent, once. */
  readonly over: (said: string, failed: boolean) => void;
}

export interface Ears {
  hear(line: Line, event: LinkEvent): void;
  lost(line: Line, refusal: Refusal): void;
  broke(error: unknown): void;
}

export interface Wanted {
  /** Name of the session: keeps its revision, and is different for each. */
  readonly session: string;
  readonly model: string;
  readonly language: string | undefined;
  /** When the input ends at the latest, ms since 1970. */
  readonly until: number;
}

/** Returns the query for the roster, of a session or of a connection before it. */
function routeOf(
  { session, model, language }: Omit<Wanted, 'until'>,
  { tenant, languages: allowed, zones }: Claims,
  urgency: RequestClass,
): RouteRequest {
  const asked = { task: 'transcribe', live: true, realtime: true, model, language } as const;
  return { tenant, session, ...asked, allowed, zones, suite: SUITE, class: urgency };
}

/**
 * Returns the refusal of a session that no agent takes, as far as it is known before the session begins: `no_pool` when
 * all agents are away for certain. `zones`: those of the edge.
 */
export function foreseeStream(
  wanted: Omit<Wanted, 'until'>,
  claims: Claims,
  { zones, snapshots }: { readonly zones: readonly string[]; readonly snapshots: readonly Snapshot[] },
  now: number,
): Refusal | undefined {
  const route = routeOf(wanted, claims, claims.priority);
  const never = foresee(route, snapshots, now);
  if (never || !haveGathered(servedZones(zones, claims), snapshots, now)) return never;
  const found = candidatesFor(route, snapshots, now);
  return found.ok ? undefined : found.refusal;
}

/** Reports whether a session that no agent takes now may find one in a moment. */
export const mayPass = ({ reason }: Refusal): boolean => reason === 'no_pool';

/** Zones of the edge that a token allows. */
const servedZones = (zones: readonly string[], claims: Claims) => zones.filter((zone) => claims.zones.includes(zone));

/** A search for an agent. */
export interface Search {
  /** Deadline, ms since 1970; it may change during the search. */
  readonly until: () => number;
  /** Waits for a model that no roster knows. */
  readonly patient: boolean;
  /** Agents that the first round leaves out. */
  readonly excluded: readonly string[];
}

/** Looks for agents that hear one session. */
export class Finder {
  readonly #wanted: Wanted;
  readonly #place: Session;
  readonly #context: RequestContext;
  readonly #ears: Ears;
  #made = 0;

  constructor(wanted: Wanted, place: Session, context: RequestContext, ears: Ears) {
    this.#wanted = wanted;
    this.#place = place;
    this.#context = context;
    this.#ears = ears;
  }

  /**
   * Returns an agent that is ready: tries one candidate after the other, then all again after a pause. `open` says for
   * each how the stream begins there. A refusal that no agent could help ends the search. A search that is not patient
   * ends as well when all agents are away for certain.
   */
  async find(
    open: () => Extract<LinkControl, { type: 'open' }>,
    { until, patient, excluded }: Search,
    signal: AbortSignal,
  ): Promise<Result<Reached>> {
    const { surroundings } = this.#context;
    let pause: number = limits.streamRedialMs.value;
    let tried = new Set(excluded);
    let refusal: Refusal = refuse('no_pool', undefined, 'no agent was tried');
    for (;;) {
      const round = await this.#round(open, tried, signal);
      if (round.ok) return round;
      refusal = round.refusal;
      if (signal.aborted) return no(refusal);
      if (!(worthMoving(refusal) || patient)) return no(refusal);
      if (!patient && mayPass(refusal) && (await this.#haveGathered())) return no(refusal);
      if (surroundings.now() + pause >= until()) return no(refusal);
      const alarm = surroundings.after(pause);
      const aborted = new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
      await Promise.race([alarm.rings, aborted]);
      alarm.cancel();
      if (signal.aborted) return no(refusal);
      pause = Math.min(pause * 2, limits.streamRedialMaxMs.value);
      tried = new Set();
    }
  }

  /** Every candidate once. The refusal is the last one that an agent gave, or the reason why there is no candidate. */
  async #round(
    open: () => Extract<LinkControl, { type: 'open' }>,
    tried: Set<string>,
    signal: AbortSignal,
  ): Promise<Result<Reached>> {
    let last: Refusal | undefined;
    for (;;) {
      const picked = await this.#pick(tried);
      if (!picked.ok) return no(last ?? picked.refusal);
      const [attempt] = picked.value;
      if (!attempt || signal.aborted) return no(last ?? refuse('no_pool'));
      tried.add(attempt.entry.description.agent);
      const reached = await this.#call(attempt, open, signal);
      if (reached.ok || !worthMoving(reached.refusal)) return reached;
      last = reached.refusal;
    }
  }

  async #snapshots(): Promise<readonly Snapshot[]> {
    const { settings, env, surroundings } = this.#context;
    return await readSnapshots(settings.zones, env.ROSTER, surroundings);
  }

  async #haveGathered(): Promise<boolean> {
    const { settings, surroundings } = this.#context;
    return haveGathered(servedZones(settings.zones, this.#place.claims), await this.#snapshots(), surroundings.now());
  }

  async #pick(exclude: ReadonlySet<string>): Promise<Result<Attempt[]>> {
    const { surroundings } = this.#context;
    const snapshots = await this.#snapshots();
    const { claims, subject } = this.#place;
    const request = { ...routeOf(this.#wanted, claims, subject.class), exclude };
    return pick(request, snapshots, memory, surroundings.now(), surroundings.random);
  }

  async #call(
    attempt: Attempt,
    open: () => Extract<LinkControl, { type: 'open' }>,
    signal: AbortSignal,
  ): Promise<Result<Reached>> {
    const { settings, surroundings, id } = this.#context;
    const { claims, subject } = this.#place;
    const { model, until } = this.#wanted;
    const rest = Math.max(0, until - surroundings.now());
    const { agent } = attempt.entry.description;
    this.#made += 1;
    const facts = {
      id: `${id}.${this.#made}`,
      agent,
      tenant: claims.tenant,
      class: subject.class,
      model,
      deadlineMs: rest + limits.streamFinishMs.value,
    };
    const over = this.#account(attempt);
    const failed = (refusal: Refusal) => {
      over(refusal.reason, outcomeOfRefusal(refusal.reason) === 'failure');
      return no(refusal);
    };
    const answer = await dialStream({ entry: attempt.entry, facts }, settings, surroundings);
    if (!answer.ok) return failed(answer.refusal);
    if (answer.value.freshSeal) {
      this.#place.note({ type: 'keys', tenant: claims.tenant, agent, action: 'setup', suite: answer.value.suite });
    }
    const { line, ready } = this.#listen(agent, answer.value);
    if (!signal.aborted) line.send({ kind: 'control', control: open() });
    const aborted = new Promise<Result<never>>((resolve) => {
      const give = () => resolve(no(refuse('pool_lost', undefined, 'the search has ended')));
      if (signal.aborted) give();
      else signal.addEventListener('abort', give, { once: true });
    });
    const begun = await within(Promise.race([ready, aborted]), limits.answerStartMs.value, surroundings);
    if (begun !== late && begun.ok) return ok({ line, ready: begun.value, over });
    line.close();
    return failed(begun === late ? refuse('pool_lost', undefined, 'not ready in time') : begun.refusal);
  }

  /** A line whose first event the search awaits. Later events go to its listener. */
  #listen(agent: string, answer: ConstructorParameters<typeof Line>[1]) {
    let begin: (result: Result<Ready>) => void = () => {};
    const ready = new Promise<Result<Ready>>((resolve) => {
      begin = resolve;
    });
    let begun = false;
    const ears = this.#ears;
    const line: Line = new Line(
      agent,
      answer,
      {
        hear(event) {
          if (begun) return ears.hear(line, event);
          if (event.type === 'keepalive') return;
          begun = true;
          if (event.type === 'ready') return begin(ok(event));
          line.close();
          if (event.type === 'refusal') return begin(no(refuse(event.reason, event.params, 'from the agent')));
          begin(no(refuse('pool_lost', undefined, 'the first event is not ready')));
        },
        lost(refusal) {
          if (begun) return ears.lost(line, refusal);
          begun = true;
          begin(no(refusal));
        },
        broke: (error) => ears.broke(error),
      },
      this.#context.surroundings.now,
    );
    return { line, ready };
  }

  #account({ entry, why }: Attempt): Reached['over'] {
    const { agent, pool, zone } = entry.description;
    const attempt = this.#made;
    const { surroundings, id } = this.#context;
    memory = started(memory, agent);
    let over = false;
    return (outcome, failure) => {
      if (over) return;
      over = true;
      memory = finished(memory, agent, failure ? 'failure' : 'neutral', 0, surroundings.now());
      const { tenant } = this.#place.claims;
      this.#place.note({ type: 'route', tenant, request: id, attempt, pool, agent, zone, why, outcome });
    };
  }
}
