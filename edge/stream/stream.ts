import { DurableObject } from 'cloudflare:workers';
import type { Snapshot } from '../../shared/pool/heartbeat.ts';
import { SNAPSHOT_STALE_MS } from '../../shared/pool/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { type Claims, clampClass } from '../../shared/tenant/claims.ts';
import { recordDenial } from '../auth/admit.ts';
import { type Runtime, realRuntime } from '../clock.ts';
import type { RequestContext } from '../context.ts';
import { refuseWith } from '../http/refuse.ts';
import { logBug } from '../http/refuse-thrown.ts';
import { Recorder } from '../ledger/record.ts';
import type { ClientCommand, ClientFrame, LiveProtocol, LiveRequest, LiveRoute } from '../protocol/live-protocol.ts';
import { liveProtocols } from '../protocol/live-protocols.ts';
import { chooseMember, type Target } from '../routing/family.ts';
import { modelNames } from '../routing/model-names.ts';
import { readSnapshots } from '../routing/snapshot.ts';
import { type Bindings, readSettings } from '../settings.ts';
import { Telemetry } from '../telemetry/telemetry.ts';
import { isTransient, refuseUnservable } from './agent-route.ts';
import { audioBudget } from './audio-budget.ts';
import { ClientSocket, type SocketHandler } from './client-socket.ts';
import { ClosingSockets, UNANSWERED } from './closing-sockets.ts';
import { EndedSessions, SESSION_CONNECTIONS_MAX } from './ended-sessions.ts';
import { openRefused } from './enter.ts';
import { type Handover, readHandover } from './handover.ts';
import { STREAM_TICK_MS } from './limits.ts';
import type { Resumable } from './resume-token.ts';
import { sockets } from './sockets.ts';
import { StreamSession } from './stream-session.ts';
import { maxDurationMs, mayTakeOver, readStart } from './stream-start.ts';

/**
 * Longest wait for a session's start, whatever the connection pings: clients of /v1/stream send it at once.
 */
export const STREAM_UNSTARTED_MS = 60_000;
/**
 * Time from the upgrade to the start of a session whose token expires meanwhile: some tokens live a second,
 * for one connection.
 */
export const STREAM_START_MS = 10_000;

/**
 * The sessions of one name, nearly always one, with the sockets of clients and agents. Nothing is stored, and sockets do
 * not hibernate: outgoing ones cannot. When the platform moves the object or its process ends, clients with a token go on
 * from their checkpoint, and others begin another session.
 */
export class Stream extends DurableObject<Bindings> implements SocketHandler {
  readonly #runtime: Runtime = realRuntime;
  /** Sockets whose client has not started a session, oldest first. */
  readonly #unstarted = new Set<ClientSocket>();
  readonly #live = new Set<StreamSession>();
  readonly #ended = new EndedSessions();
  /** Snapshots of the rosters at the last upgrade. */
  #rosters: { readonly snapshots: readonly Snapshot[]; readonly at: number } = { snapshots: [], at: 0 };
  readonly #closing = new ClosingSockets({
    runtime: this.#runtime,
    busy: () => this.#unstarted.size + this.#live.size > 0,
    abort: () => this.ctx.abort(UNANSWERED),
  });

  /** Accepts an upgrade that the Worker has authorised. */
  async fetch(request: Request): Promise<Response> {
    const handover = readHandover(request.headers);
    const made = liveProtocols[handover.dialect].make(new URL(request.url), request.headers);
    if (!made.ok) return refuseWith(made.refusal);
    const protocol = made.value;
    const refused = (await this.#foresee(protocol, handover)) ?? this.#refuseFull(handover);
    if (refused) return refused;
    if (!this.#makeRoom()) return this.#turnAway(protocol, handover);
    const { 0: theirs, 1: ours } = new WebSocketPair();
    const { now } = this.#runtime;
    const socket = new ClientSocket({ socket: ours, protocol, handover, handler: this, closing: this.#closing, now });
    const full = sockets.open(handover.claims, socket);
    if (full) return this.#turnAway(protocol, handover, full);
    this.#unstarted.add(socket);
    socket.open(this.#name, now() + maxDurationMs(handover.claims));
    void this.#expire(socket);
    return new Response(null, { status: 101, webSocket: theirs });
  }

  /**
   * Reports whether this object takes another socket. Unstarted ones give way, the oldest first: their clients may be
   * gone. Sockets that cannot be closed beside a live session count.
   */
  #makeRoom(): boolean {
    const limit = SESSION_CONNECTIONS_MAX - this.#closing.overdue;
    if (this.#live.size >= limit) return false;
    let connected = 0;
    for (const session of this.#live) if (session.isConnected) connected += 1;
    for (const socket of this.#unstarted) {
      if (this.#unstarted.size + connected < limit) break;
      this.#refuse(socket, refuse('edge_busy'));
    }
    return true;
  }

  /** Refuses what no agent can serve before a session starts, unless the client may come back to a session. */
  async #foresee(protocol: LiveProtocol, handover: Handover): Promise<Response | undefined> {
    const { claims, dialect: name, request } = handover;
    const isFirst = this.#live.size === 0;
    const context = this.#makeContext(handover);
    const { settings, env, runtime } = context;
    const snapshots = await readSnapshots(settings.zones, env.ROSTER, runtime);
    this.#rosters = { snapshots, at: runtime.now() };
    if (!isFirst || !protocol.route) return undefined;
    const refusal = this.#foreseeRoute(protocol.route(), claims);
    if (!refusal) return undefined;
    recordDenial(claims, 'stream', refusal, context);
    return liveProtocols[name].refuse?.(refusal, request) ?? this.#turnAway(protocol, handover, refusal);
  }

  /**
   * Refuses on the socket, in the client's protocol. Refuses by HTTP while the object has overdue sockets, which a live
   * session keeps open: each refused socket could become another one.
   */
  #turnAway(protocol: LiveProtocol, handover: Handover, refusal = refuse('edge_busy')): Response {
    const full = this.#refuseFull(handover);
    if (full) return full;
    const { request, claims, dialect: name } = handover;
    if (this.#closing.overdue > 0) return liveProtocols[name].refuse?.(refusal, request) ?? refuseWith(refusal);
    const now = this.#runtime.now();
    protocol.open({ id: this.#name, request, now, expires: now });
    const { theirs, ours } = openRefused(refusal, protocol, now, request);
    ours.addEventListener('close', () => this.#closing.delete(ours));
    ours.addEventListener('error', () => this.#closing.delete(ours));
    this.#closing.add(ours, claims);
    return new Response(null, { status: 101, webSocket: theirs });
  }

  /** Refuses by HTTP, without a socket, while too many sockets of the tenant are closing. */
  #refuseFull({ claims, dialect, request }: Handover): Response | undefined {
    const full = sockets.checkClosing(claims);
    return full && (liveProtocols[dialect].refuse?.(full, request) ?? refuseWith(full));
  }

  onCommand(command: ClientCommand, socket: ClientSocket): void {
    switch (command.type) {
      case 'start':
        this.#start(socket, command.request);
        break;
      case 'route':
        this.#checkRoute(socket, command.route, command.accepted);
        break;
      case 'close':
        this.#refuse(socket, command.refusal);
        break;
      case 'alive':
        break;
      case 'end':
        this.#refuse(socket, refuse('frame_invalid', { rule: 'nothing was started' }));
        break;
      default:
        this.#refuse(socket, refuse('frame_invalid', { rule: 'the session has not started' }));
    }
  }

  onDisconnect(socket: ClientSocket): void {
    this.#forgetUnstarted(socket);
  }

  onError(error: unknown, socket: ClientSocket): void {
    logBug(socket.handover.request, error);
    this.#refuse(socket, refuse('internal'));
  }

  #checkRoute(socket: ClientSocket, route: LiveRoute, accepted: readonly ClientFrame[]): void {
    const refusal = this.#foreseeRoute(route, socket.handover.claims);
    if (!refusal) socket.acceptRoute(accepted);
    // Another route would meet the same outage.
    else if (isTransient(refusal)) this.#refuse(socket, refusal);
    else socket.rejectRoute(refusal);
  }

  /** Returns why no agent serves a route, by the rosters of the last upgrade; `unknown` when these are too old. */
  #foreseeRoute(route: LiveRoute, claims: Claims, unknown?: Refusal): Refusal | undefined {
    const { snapshots, at } = this.#rosters;
    const now = this.#runtime.now();
    const target = this.#targetOf(route, claims);
    if (target === undefined || now - at > SNAPSHOT_STALE_MS) return unknown;
    if (!target.ok) return target.refusal;
    const { zones } = readSettings(this.env);
    return refuseUnservable({ session: this.#name, ...target.value }, claims, { zones, snapshots }, now);
  }

  /** Returns the model for a requested name and language, by the rosters of the last upgrade. */
  #targetOf(
    { model, language, languages: choice }: LiveRoute,
    { tenant, languages, zones }: Claims,
  ): Result<Target> | undefined {
    const { snapshots } = this.#rosters;
    const name = modelNames(snapshots, tenant)(model);
    if (name === undefined) return undefined;
    const request = { name, language, languages: choice, live: true, allowed: languages, zones };
    return chooseMember(request, snapshots, this.#runtime.now());
  }

  get #name(): string {
    return (this.ctx.id.name ?? '').split('/').slice(1).join('/');
  }

  #refuse(socket: ClientSocket, refusal: Refusal): void {
    this.#forgetUnstarted(socket);
    socket.close({ refusal });
  }

  #forgetUnstarted(socket: ClientSocket): void {
    this.#unstarted.delete(socket);
    sockets.release(socket.handover.claims, socket);
  }

  /** Closes a socket whose client starts no session in time, is silent for too long, or has a token that expired. */
  async #expire(socket: ClientSocket): Promise<void> {
    const { now, after } = this.#runtime;
    const { idleMs, handover, protocol } = socket;
    const began = now();
    const expires = Math.max(handover.claims.expires * 1_000, began + STREAM_START_MS);
    const unstartedMs = protocol.unstartedMs ?? STREAM_UNSTARTED_MS;
    while (this.#unstarted.has(socket)) {
      await after(STREAM_TICK_MS).rings;
      if (!this.#unstarted.has(socket)) return;
      if (now() >= expires) this.#refuse(socket, refuse('token_expired'));
      else if (now() >= began + unstartedMs) this.#refuse(socket, refuseIdle(unstartedMs));
      else if (now() - socket.receivedAt >= idleMs) this.#refuse(socket, refuseIdle(idleMs));
    }
  }

  #start(socket: ClientSocket, request: LiveRequest): void {
    const { handover } = socket;
    const { claims } = handover;
    const started = this.#readStart(request, claims);
    const found = started.ok ? this.#findLive(request, started.value, claims) : started;
    if (!started.ok || !found.ok) {
      if (!found.ok) this.#refuse(socket, found.refusal);
      return;
    }
    this.#forgetUnstarted(socket);
    if (found.value) {
      found.value.resume(socket, request.next);
      return;
    }
    if (!audioBudget.mayEnter(claims.tenant)) {
      socket.close({ refusal: refuse('edge_busy') });
      return;
    }
    const facts = started.value;
    const session: StreamSession = new StreamSession({
      facts,
      options: request.options,
      claims,
      class: clampClass(handover.class ?? 'realtime', claims.priority),
      context: this.#makeContext(handover),
      onClosed: () => this.#remove(session),
    });
    this.#live.add(session);
    const booked = this.#ended.takeBooked(facts, this.#runtime.now());
    session.start(socket, request.resume !== undefined, booked);
  }

  #readStart(request: LiveRequest, claims: Claims): Result<Resumable> {
    const now = this.#runtime.now();
    const target = request.resume === undefined ? this.#targetOf(request, claims) : undefined;
    if (target && !target.ok) return target;
    const { model = request.model, family, languages } = target?.value ?? {};
    const context = { session: this.#name, settings: readSettings(this.env), now, family, languages };
    const started = readStart({ ...request, model }, claims, context);
    if (!started.ok || request.resume === undefined || !this.#ended.wasDelivered(started.value.began)) return started;
    return no(refuse('resume_invalid', undefined, 'everything was said'));
  }

  /**
   * Returns the live session that the client resumes, if this object has it. Closes a session that cannot replay what the
   * client lacks, or that the token does not allow: the client continues from its checkpoint. Refuses a client that no
   * agent could serve.
   */
  #findLive(request: LiveRequest, facts: Resumable, claims: Claims): Result<StreamSession | undefined> {
    if (request.resume === undefined) return ok(undefined);
    const session = [...this.#live].find((one) => one.facts.began === facts.began);
    if (!session) return ok(undefined);
    const { claims: own, facts: current } = session;
    const mayResume = mayTakeOver(claims, own, current.until, this.#runtime.now());
    if (session.canReplayFrom(request.next) && mayResume) return ok(session);
    const { model, language } = facts;
    const route = { model, ...(language !== undefined && { language }) };
    const refusal = this.#foreseeRoute(route, claims, refuse('edge_busy'));
    if (refusal && !isTransient(refusal)) return no(refusal);
    session.refuse(refuse('stream_replaced'));
    this.#noteEnd(session);
    return ok(undefined);
  }

  #remove(session: StreamSession): void {
    this.#noteEnd(session);
    this.#live.delete(session);
  }

  #noteEnd({ facts, ended }: StreamSession): void {
    if (ended) this.#ended.add(facts.began, ended);
  }

  #makeContext({ request: id, place, traceparent }: Handover): RequestContext {
    const settings = readSettings(this.env);
    const runtime = this.#runtime;
    const waitUntil = (work: Promise<unknown>) => this.ctx.waitUntil(work);
    const recorder = new Recorder({
      ...{ gates: this.env.GATE, zones: settings.zones, waitMs: settings.auditWaitMs },
      ...{ runtime, waitUntil },
    });
    const telemetry = new Telemetry({ settings, roster: this.env.ROSTER, runtime, waitUntil });
    const span = telemetry.startSpan({ name: 'stream', kind: 'internal', traceparent });
    const made = { id, place, env: this.env, settings, runtime, recorder, waitUntil, telemetry, span };
    return { ...made, discardBody: undefined };
  }
}

const refuseIdle = (ms: number): Refusal => refuse('stream_idle', { limit: ms / 1_000 });
