import { DurableObject } from 'cloudflare:workers';
import { limits } from '../../shared/limits.ts';
import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { allowsLanguage, isOpen } from '../../shared/pool/language.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { type Claims, clampClass } from '../../shared/tenant/claims.ts';
import { Recorder } from '../audit/record.ts';
import { logBug } from '../bug.ts';
import { realSurroundings, type Surroundings } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { readSnapshots } from '../pool/snapshot.ts';
import { refuseWith } from '../refuse.ts';
import { type Bindings, readSettings } from '../settings.ts';
import { recordDenial } from '../tenant/admit.ts';
import { foreseeStream, isTransient } from './agent-route.ts';
import { audioBudget } from './audio-budget.ts';
import { Closing, UNANSWERED } from './closing.ts';
import { Connection, type Owner } from './connection.ts';
import type { ClientStep, LiveDialect, LiveRequest, LiveWish } from './dialect.ts';
import { dialects } from './dialects.ts';
import { openRefused } from './enter.ts';
import { type Handover, readHandover } from './handover.ts';
import { LiveSession } from './live-session.ts';
import { Ended } from './remains.ts';
import { openResume, type Resumable } from './resume-token.ts';
import { sockets } from './sockets.ts';

/**
 * The sessions of one name, nearly always one: their clients' sockets and those to agents, and the audio between them.
 * Nothing is ever stored, and sockets do not hibernate: outgoing ones cannot. When the object is moved or its process
 * ends, all of it is gone: clients with a token go on from their checkpoint, others begin another session.
 */
export class Stream extends DurableObject<Bindings> implements Owner {
  readonly #surroundings: Surroundings = realSurroundings;
  /** Connections whose client has not said what it wants have none. */
  readonly #sessions = new Map<Connection, LiveSession | undefined>();
  readonly #live = new Set<LiveSession>();
  /** Snapshots of the rosters when the last client connected. */
  #listed: { readonly snapshots: readonly Snapshot[]; readonly at: number } = { snapshots: [], at: 0 };
  /** State of sessions that ended here lately. */
  readonly #ended = new Ended();
  readonly #closing = new Closing({
    surroundings: this.#surroundings,
    busy: () => this.#sessions.size + this.#live.size > 0,
    abort: () => this.ctx.abort(UNANSWERED),
  });

  /** An upgrade that the Worker has found to be allowed. */
  async fetch(request: Request): Promise<Response> {
    const handover = readHandover(request.headers);
    const dialect = dialects[handover.dialect].make(new URL(request.url), request.headers);
    if (!dialect.ok) return refuseWith(dialect.refusal);
    const foreseen = (await this.#foresee(dialect.value, handover)) ?? this.#refuseFull(handover);
    if (foreseen) return foreseen;
    if (!this.#hasRoom()) return this.#turnAway(dialect.value, handover);
    const { 0: theirs, 1: ours } = new WebSocketPair();
    const { now } = this.#surroundings;
    const connection = new Connection(ours, dialect.value, handover, this, now);
    const crowd = sockets.open(handover.claims, connection);
    if (crowd) return this.#turnAway(dialect.value, handover, crowd);
    this.#sessions.set(connection, undefined);
    connection.open(this.#name, now() + this.#lengthMs(connection));
    void this.#minds(connection);
    return new Response(null, { status: 101, webSocket: theirs });
  }

  /**
   * Whether this object takes another connection. One that has not started a session gives way: its client may be gone.
   * Sockets that cannot be ended beside a live session count.
   */
  #hasRoom(): boolean {
    const most = limits.streamSessions.value - this.#closing.overdue;
    if (this.#live.size >= most) return false;
    for (const [connection, session] of this.#sessions) {
      if (this.#sessions.size < most) return true;
      if (!session) this.#end(connection, refuse('edge_busy'));
    }
    return this.#sessions.size < most;
  }

  /** Refuses what no agent can serve before there is a session, but for a client that comes back to one. */
  async #foresee(dialect: LiveDialect, handover: Handover): Promise<Response | undefined> {
    const { claims, dialect: name, request } = handover;
    const first = this.#live.size === 0;
    if (first && !dialect.wish) return undefined;
    const context = this.#makeContext(request);
    const { settings, env, surroundings } = context;
    const snapshots = await readSnapshots(settings.zones, env.ROSTER, surroundings);
    this.#listed = { snapshots, at: surroundings.now() };
    if (!first || !dialect.wish) return undefined;
    const refusal = this.#hopeless(dialect.wish(), claims);
    if (!refusal) return undefined;
    recordDenial(claims, 'stream', refusal, context);
    return dialects[name].refuse?.(refusal, request) ?? this.#turnAway(dialect, handover, refusal);
  }

  /**
   * Refuses on the socket, as every refusal of a dialect is. Refuses by HTTP while sockets are overdue that a live
   * session keeps the edge from ending: each refused socket could become another one.
   */
  #turnAway(dialect: LiveDialect, handover: Handover, refusal = refuse('edge_busy')): Response {
    const full = this.#refuseFull(handover);
    if (full) return full;
    const { request, claims } = handover;
    if (this.#closing.overdue > 0) return dialects[handover.dialect].refuse?.(refusal, request) ?? refuseWith(refusal);
    const now = this.#surroundings.now();
    dialect.open({ id: this.#name, request, now, expires: now });
    const { theirs, ours } = openRefused(refusal, dialect, now, request);
    ours.addEventListener('close', () => this.#closing.delete(ours));
    ours.addEventListener('error', () => this.#closing.delete(ours));
    this.#closing.add(ours, claims);
    return new Response(null, { status: 101, webSocket: theirs });
  }

  /** Refuses by HTTP, without a socket, while too many of the tenant are closing. */
  #refuseFull({ claims, dialect, request }: Handover): Response | undefined {
    const full = sockets.checkClosing(claims);
    return full && (dialects[dialect].refuse?.(full, request) ?? refuseWith(full));
  }

  closing(connection: Connection): void {
    this.#closing.add(connection, connection.handover.claims);
  }

  closed(connection: Connection): void {
    this.#closing.delete(connection);
  }

  step(connection: Connection, step: ClientStep): void {
    const session = this.#sessions.get(connection);
    if (session) session.step(step);
    else if (step.type === 'start') this.#start(connection, step.request);
    else if (step.type === 'wish') this.#answerWish(connection, step);
    else if (step.type === 'close') this.#end(connection, step.refusal);
    else if (step.type === 'end') this.#end(connection, refuse('frame_invalid', { rule: 'nothing was started' }));
    else if (step.type !== 'alive') {
      this.#end(connection, refuse('frame_invalid', { rule: 'the session has not started' }));
    }
  }

  #answerWish(connection: Connection, { wish, granted }: Extract<ClientStep, { type: 'wish' }>): void {
    const refusal = this.#hopeless(wish, connection.handover.claims);
    // Another wish would meet the same outage.
    if (refusal && isTransient(refusal)) this.#end(connection, refusal);
    else if (refusal) connection.warn(refusal);
    else connection.grant(granted);
  }

  /** Returns why no agent serves a wish, by the rosters of the last upgrade: `unknown` when that is too long ago. */
  #hopeless({ model, language }: LiveWish, claims: Claims, unknown?: Refusal): Refusal | undefined {
    const { snapshots, at } = this.#listed;
    const now = this.#surroundings.now();
    if (model === undefined || now - at > limits.snapshotStaleMs.value) return unknown;
    const { zones } = readSettings(this.env);
    return foreseeStream({ session: this.#name, model, language }, claims, { zones, snapshots }, now);
  }

  dropped(connection: Connection, deliberate: boolean): void {
    const session = this.#sessions.get(connection);
    this.#leave(connection);
    session?.dropped(connection, deliberate);
  }

  broke(connection: Connection, error: unknown): void {
    const session = this.#sessions.get(connection);
    if (session) session.broke(error);
    else {
      logBug(connection.handover.request, error);
      this.#end(connection, refuse('internal'));
    }
  }

  get #name(): string {
    return (this.ctx.id.name ?? '').split('/').slice(1).join('/');
  }

  #lengthMs({ handover }: Connection): number {
    return Math.min(handover.claims.sessionSeconds, limits.streamSeconds.value) * 1_000;
  }

  #end(connection: Connection, refusal: ReturnType<typeof refuse>): void {
    this.#leave(connection);
    connection.end({ refusal });
  }

  #leave(connection: Connection): void {
    this.#sessions.delete(connection);
    sockets.release(connection.handover.claims, connection);
  }

  /** A client that never says what it wants holds no place: it does not stay for ever, nor longer than its token. */
  async #minds(connection: Connection): Promise<void> {
    const { now, after } = this.#surroundings;
    const idle = connection.idleMs;
    const began = now();
    const expires = Math.max(connection.handover.claims.expires * 1_000, began + limits.streamStartMs.value);
    const last = began + (connection.dialect.unstartedMs ?? limits.streamUnstartedMs.value);
    for (;;) {
      await after(limits.streamTickMs.value).rings;
      if (!this.#sessions.has(connection) || this.#sessions.get(connection)) return;
      if (now() >= expires) return this.#end(connection, refuse('token_expired'));
      if (now() >= last) return this.#end(connection, refuse('stream_idle', { limit: (last - began) / 1_000 }));
      if (now() - connection.heardAt < idle) continue;
      return this.#end(connection, refuse('stream_idle', { limit: idle / 1_000 }));
    }
  }

  #start(connection: Connection, request: LiveRequest): void {
    const wanted = this.#read(connection, request);
    if (!wanted.ok) {
      this.#end(connection, wanted.refusal);
      return;
    }
    const facts = wanted.value;
    const found = this.#known(connection, request, facts);
    if (!found.ok) {
      this.#end(connection, found.refusal);
      return;
    }
    sockets.release(connection.handover.claims, connection);
    const known = found.value;
    if (known) {
      for (const [before, session] of this.#sessions) if (session === known) this.#sessions.delete(before);
      this.#sessions.set(connection, known);
      known.resume(connection, request.next);
      return;
    }
    const { claims, class: wish } = connection.handover;
    if (!audioBudget.mayEnter(claims.tenant)) {
      this.#end(connection, refuse('edge_busy'));
      return;
    }
    const context = this.#makeContext(connection.handover.request);
    const session: LiveSession = new LiveSession(
      facts,
      request.options,
      { claims, class: clampClass(wish ?? 'realtime', claims.priority) },
      context,
      () => this.#forget(session),
    );
    this.#live.add(session);
    this.#sessions.set(connection, session);
    session.begin(connection, request.resume !== undefined, this.#ended.bookedOf(facts, this.#surroundings.now()));
  }

  #noteEnd({ facts, remains }: LiveSession): void {
    if (remains) this.#ended.note(facts.began, remains);
  }

  #forget(session: LiveSession): void {
    this.#noteEnd(session);
    this.#live.delete(session);
    for (const [connection, own] of this.#sessions) if (own === session) this.#sessions.delete(connection);
  }

  /** Returns the facts of the session, of its resume token or of the client's request. */
  #read({ handover }: Connection, request: LiveRequest): Result<Resumable> {
    const { claims } = handover;
    const now = this.#surroundings.now();
    const longest = now + Math.min(claims.sessionSeconds, limits.streamSeconds.value) * 1_000;
    const { model, language } = request;
    if (claims.sealing === 'client') return no(refuse('sealing_required'));
    if (!isOpen(language) && !allowsLanguage(claims.languages, language)) {
      return no(refuse('language_forbidden', { language }));
    }
    if (request.resume !== undefined) {
      const token = openResume(request.resume, readSettings(this.env), now);
      if (!token.ok) return token;
      const { session, tenant, subject, format } = token.value;
      const same = session === this.#name && tenant === claims.tenant && subject === claims.subject;
      if (!same || !sameFormat(format, request.format)) return no(refuse('resume_invalid'));
      if (this.#ended.isOver(token.value.began)) return no(refuse('resume_invalid', undefined, 'everything was said'));
      return ok({ ...token.value, until: Math.min(token.value.until, longest) });
    }
    if (model === undefined || model === '') return no(refuse('field_missing', { field: 'model' }));
    return ok({
      v: 1,
      session: this.#name,
      tenant: claims.tenant,
      ...(claims.subject !== undefined && { subject: claims.subject }),
      model,
      ...(language !== undefined && { language }),
      format: request.format,
      began: now,
      until: longest,
    });
  }

  /**
   * Returns the session that the client resumes with its token, when this object has it. Refuses a client that could
   * only end it.
   */
  #known(connection: Connection, request: LiveRequest, facts: Resumable): Result<LiveSession | undefined> {
    if (request.resume === undefined) return ok(undefined);
    const session = [...this.#live].find((one) => one.facts.began === facts.began);
    if (!session) return ok(undefined);
    if (session.canRetell(request.next) && this.#allows(connection, session)) return ok(session);
    const hopeless = this.#hopeless(wishOf(facts), connection.handover.claims, refuse('edge_busy'));
    if (hopeless && !isTransient(hopeless)) return no(hopeless);
    // The session lacks what the client wants, or its token allows less: it begins again from the checkpoint.
    session.refuse(refuse('stream_replaced'));
    this.#noteEnd(session);
    return ok(undefined);
  }

  /** Would the token that the client comes back with have begun this session, as it is and for as long. */
  #allows({ handover }: Connection, { claims, facts }: LiveSession): boolean {
    const { zones, languages, sessionSeconds } = handover.claims;
    const covers = (mine: readonly string[], theirs: readonly string[]) =>
      mine.includes('*') || theirs.every((one) => mine.includes(one));
    const until = this.#surroundings.now() + sessionSeconds * 1_000;
    return covers(zones, claims.zones) && covers(languages, claims.languages) && until >= facts.until;
  }

  #makeContext(id: string): RequestContext {
    const settings = readSettings(this.env);
    const surroundings = this.#surroundings;
    const waitUntil = (work: Promise<unknown>) => this.ctx.waitUntil(work);
    const recorder = new Recorder({
      ...{ gates: this.env.GATE, zones: settings.zones, waitMs: settings.auditWaitMs },
      ...{ surroundings, waitUntil },
    });
    return { id, env: this.env, settings, surroundings, recorder, waitUntil, discardBody: undefined };
  }
}

const sameFormat = (one: LiveRequest['format'], other: LiveRequest['format']): boolean =>
  one.encoding === other.encoding && one.rate === other.rate && one.channels === other.channels;

const wishOf = ({ model, language }: Resumable): LiveWish => ({ model, ...(language !== undefined && { language }) });
