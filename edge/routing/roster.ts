import { DurableObject } from 'cloudflare:workers';
import { createHash } from 'node:crypto';
import type { AuditEvent } from '../../shared/audit/event.ts';
import type { Load, RosterEntry, RosterMessage, Snapshot } from '../../shared/pool/heartbeat.ts';
import { HEARTBEAT_MS, ROSTER_AGENTS_MAX } from '../../shared/pool/limits.ts';
import { publicText, type Refusal, refusals, refuse } from '../../shared/refusal.ts';
import type { ReleaseMap } from '../../shared/registry/release.ts';
import { no, ok, type Result } from '../../shared/result.ts';
import { verifyAttestation } from '../../shared/seal/attestation.ts';
import { refuseWith } from '../http/refuse.ts';
import { logBug } from '../http/refuse-thrown.ts';
import { createEvent } from '../ledger/create-event.ts';
import { Outbox, type OutboxPage } from '../ledger/outbox.ts';
import { Rest } from '../ledger/rest.ts';
import { Shipper } from '../ledger/ship.ts';
import type { DrainOrder, RosterMethods } from '../objects.ts';
import { type Bindings, readSettings } from '../settings.ts';
import type { MetricReport } from '../telemetry/meter.ts';
import { StoredMetrics } from '../telemetry/stored-metrics.ts';
import { type Admission, type Agent, readHello, readMessage } from './agent-link.ts';
import { AgentNames } from './agent-names.ts';
import type { RouteDecision } from './decision.ts';
import { StoredDecisions } from './decisions.ts';
import { DrainOrders, draining, modelsOnlyAt } from './drain-orders.ts';
import { ClosedAgents, LastMessages, ROSTER_GONE_MS } from './known-agents.ts';
import { type RefusedAgent, RefusedAgents } from './refused-agents.ts';
import { StoredRelease } from './stored-release.ts';
import { StoredTenants } from './stored-tenants.ts';

/** Queued messages of one socket; an agent sends one a second. */
const ROSTER_WAITING_MAX = 16;
/** Sockets of a zone without a hello; a whole zone that reconnects sends them within a few round trips. */
export const ROSTER_STRANGERS_MAX = 64;
/** Longest wait for a hello: an agent sends it at once. */
export const ROSTER_HELLO_MS = 10_000;

interface Link {
  readonly socket: RuntimeSocket;
  readonly admission: Admission;
  /** ms since 1970. */
  readonly opened: number;
  agent: Agent | undefined;
  /** The message being read and those behind it: verification takes time, and order matters. */
  tail: Promise<void>;
  waiting: number;
}

/**
 * Registry of the live agents of one zone, from their signed reports.
 *
 * Sockets are accepted without hibernation: every agent reports each second, so the object would never sleep,
 * and agents rebuild state in memory by a hello within a second of a restart. Meanwhile isolates use their
 * last snapshot. The outbox of audit events is on disk.
 */
export class Roster extends DurableObject<Bindings> implements RosterMethods {
  readonly #began = Date.now();
  readonly #links = new Map<string, Link>();
  /** Sockets before their hello. */
  readonly #strangers = new Set<Link>();
  readonly #lastMessages = new LastMessages();
  readonly #gone = new ClosedAgents();
  readonly #names: AgentNames;
  readonly #outbox: Outbox;
  readonly #shipper: Shipper;
  readonly #release: StoredRelease;
  readonly #rest: Rest;
  readonly #refused = new RefusedAgents();
  readonly #decisions = new StoredDecisions();
  readonly #drains = new DrainOrders();
  readonly #metrics: StoredMetrics;
  readonly #tenants: StoredTenants;

  constructor(ctx: DurableObjectState, env: Bindings) {
    super(ctx, env);
    this.#outbox = new Outbox(ctx.storage.sql, undefined, env.AUDIT_LOGS !== undefined);
    this.#release = new StoredRelease(ctx.storage.sql);
    this.#names = new AgentNames(ctx.storage.sql);
    const { name } = ctx.id;
    this.#shipper = new Shipper(this.#outbox, ctx.storage.sql, env, name === undefined ? undefined : `roster/${name}`);
    this.#rest = new Rest(ctx.storage, this.#outbox, this.#shipper);
    this.#metrics = new StoredMetrics(name ?? '');
    this.#tenants = new StoredTenants(ctx.storage.sql);
  }

  /**
   * Accepts a WebSocket of an agent. The Worker has verified its token and names its pool and zone in
   * headers.
   */
  async fetch(request: Request): Promise<Response> {
    const admission = {
      pool: request.headers.get('auricle-pool') ?? '',
      zone: request.headers.get('auricle-zone') ?? '',
    };
    const now = Date.now();
    this.#dropSilentStrangers(now);
    if (this.#strangers.size >= ROSTER_STRANGERS_MAX) {
      return refuseWith(refuse('pool_busy', undefined, 'too many sockets that have not said hello'));
    }
    const pair = new WebSocketPair();
    const link: Link = {
      socket: pair[1],
      admission,
      opened: now,
      agent: undefined,
      tail: Promise.resolve(),
      waiting: 0,
    };
    this.#strangers.add(link);
    link.socket.accept();
    link.socket.addEventListener('message', ({ data }) => this.#queue(link, data));
    link.socket.addEventListener('close', () => {
      // The runtime does not answer a closing handshake by itself.
      link.socket.close(1000, 'goodbye');
      this.#drop(link, 'closed');
    });
    link.socket.addEventListener('error', () => this.#drop(link, 'socket error'));
    return new Response(null, { status: 101, webSocket: pair[0] });
  }

  /** Returns the connected agents with their last reports, and those that left lately. */
  snapshot(): Snapshot {
    const now = Date.now();
    const entries: RosterEntry[] = [];
    for (const { agent } of this.#links.values()) {
      if (!agent?.load || now - agent.heard > ROSTER_GONE_MS) continue;
      if (agent.expires * 1_000 <= now) this.#gone.add(entryOf(agent, agent.load), now);
      else entries.push(entryOf(agent, agent.load));
    }
    this.#dropSilentStrangers(now);
    entries.push(...this.#gone.list(now, ROSTER_AGENTS_MAX - entries.length));
    const release = this.#release.map;
    return { zone: this.ctx.id.name ?? '', at: now, began: this.#began, entries, ...(release && { release }) };
  }

  /** Returns agents refused lately and not connected, with the reason. */
  refused(): RefusedAgent[] {
    return this.#refused.list(Date.now());
  }

  addDecisions(decisions: readonly RouteDecision[]): void {
    this.#decisions.add(decisions, Date.now());
  }

  /** Returns the decision about a recent request. */
  decision(request: string): RouteDecision | undefined {
    return this.#decisions.get(request, Date.now());
  }

  addTenant(month: string, name: string): void {
    this.#tenants.add(month, name);
  }

  tenants(month: string, after: string): string[] {
    return this.#tenants.list(month, after);
  }

  addMetrics(report: MetricReport): void {
    this.#metrics.add(report, Date.now());
  }

  metrics(): [series: string, value: number][] {
    return this.#metrics.read(Date.now());
  }

  /** Stores a signed release map, sends it to the agents and returns the newest generation. */
  release(map: ReleaseMap, signed: string): number {
    const generation = this.#release.keep(map, signed);
    for (const link of this.#links.values()) this.#sendRelease(link);
    return generation;
  }

  /** Sends the map to an agent with an older one; a lost message is repeated after its next report. */
  #sendRelease(link: Link): void {
    const known = link.agent?.release;
    const release = known === undefined ? undefined : this.#release.newerThan(known);
    if (release !== undefined) this.#say(link, { type: 'release', release });
  }

  /** Orders the agents of a pool to drain and returns their names. They are listed as draining from now on. */
  drain(pool: string, { force, by }: DrainOrder): Result<readonly string[]> {
    const links = [...this.#links.values()].filter(({ agent }) => agent?.description.pool === pool);
    if (links.length === 0) return no(refuse('pool_unknown', { pool }));
    const snapshot = this.snapshot();
    const { zone, at } = snapshot;
    const models = force ? [] : modelsOnlyAt(pool, snapshot);
    if (models.length > 0) return no(refuse('pool_needed', { pool, zone, models: models.join(', ') }));
    const what = { action: 'pool.drain', zone, pool, count: links.length, ...(force && { outcome: 'forced' }) };
    this.record([createEvent({ type: 'operator.act', ...what, ...by }, at)]);
    for (const link of links) {
      if (link.agent) link.agent = this.#drains.add(link.agent);
      this.#say(link, { type: 'drain' });
    }
    return ok(links.flatMap(({ agent }) => agent?.description.agent ?? []));
  }

  outbox(after: number, limit: number): OutboxPage {
    return this.#outbox.page(after, limit);
  }

  record(events: readonly AuditEvent[]): void {
    if (events.length === 0) return;
    try {
      this.ctx.storage.transactionSync(() => this.#outbox.add(events, Date.now()));
      this.#shipper.nudge();
      this.#rest.wrote(Date.now());
    } catch (error) {
      this.#outbox.reload();
      throw error;
    }
  }

  alarm(): void {
    this.#rest.ring(Date.now());
  }

  /**
   * Drops sockets without a hello in time. It runs on arrivals and requests; between them such a socket harms
   * nothing.
   */
  #dropSilentStrangers(now: number): void {
    for (const link of this.#strangers) {
      if (now - link.opened <= ROSTER_HELLO_MS) continue;
      this.#strangers.delete(link);
      this.#refuse(link, refuse('heartbeat_invalid', { rule: 'no hello in time' }, 'no hello in time'));
    }
  }

  #queue(link: Link, data: string | ArrayBuffer): void {
    if (typeof data !== 'string' || link.waiting >= ROSTER_WAITING_MAX) {
      link.socket.close(refusals.heartbeat_invalid.close, 'heartbeat_invalid');
      this.#drop(link, 'flooded or not text');
      return;
    }
    link.waiting += 1;
    link.tail = link.tail
      .then(() => this.#read(link, data))
      .catch((error: unknown) => {
        logBug(`zone ${this.ctx.id.name ?? ''}`, error);
        link.socket.close(refusals.internal.close, 'internal');
      })
      .finally(() => {
        link.waiting -= 1;
      });
  }

  async #read(link: Link, text: string): Promise<void> {
    if (link.agent) return this.#readNext(link, link.agent, text);
    const { attestation } = readSettings(this.env);
    const now = Date.now();
    const attest = (token: string) => verifyAttestation(token, attestation, now);
    const { admission, opened } = link;
    const lastMessageOf = (agent: string) => this.#lastMessages.get(agent);
    const hello = await readHello(text, { admission, attest, lastMessageOf, opened, now });
    if (!hello.ok) return this.#refuse(link, hello.refusal);
    const agent = hello.value;
    const { agent: name } = agent.description;
    if (!this.#links.has(name) && this.#links.size >= ROSTER_AGENTS_MAX) {
      return this.#refuse(link, { reason: 'pool_busy', detail: 'the roster is full' });
    }
    const claim = this.#names.claim(agent.description, agent.boot, { now, connected: this.#links.has(name) });
    if (!claim.ok) return this.#refuse(link, claim.refusal);
    // The socket may have been dropped during verification.
    if (!this.#strangers.delete(link)) return;
    const before = this.#links.get(name);
    if (before) before.socket.close(1000, 'replaced by a newer connection');
    link.agent = agent;
    this.#refused.forget(link.admission.pool);
    this.#links.set(name, link);
    this.#gone.delete(name);
    this.#hear(agent, now);
    const facts = { attestation: digest(agent.attestation) };
    const events = [createEvent({ type: 'keys', agent: name, action: 'attested', ...facts }, now)];
    if (claim.value !== undefined && claim.value !== agent.boot) {
      const detail = before ? 'the other was connected' : 'the other had gone';
      events.push(createEvent({ type: 'keys', agent: name, action: 'replaced', ...facts, detail }, now));
    }
    this.record(events);
    this.#say(link, { type: 'welcome', intervalMs: HEARTBEAT_MS });
  }

  async #readNext(link: Link, agent: Agent, text: string): Promise<void> {
    // A replaced socket may still deliver older messages.
    if (this.#links.get(agent.description.agent) !== link) return;
    const read = await readMessage(text, agent, Date.now());
    if (!read.ok) return this.#refuse(link, read.refusal);
    const { agent: next, events, ack } = read.value;
    const unconfirmed = this.#drains.isUnconfirmed(next);
    link.agent = unconfirmed ? draining(next) : next;
    this.#hear(next, Date.now());
    this.record(events);
    if (ack !== undefined) return this.#say(link, { type: 'ack', seq: ack });
    if (unconfirmed) this.#say(link, { type: 'drain' });
    this.#sendRelease(link);
  }

  #hear({ description, boot, seq, issued, earlier, expires }: Agent, now: number): void {
    this.#lastMessages.set(description.agent, { boot, seq, issued, earlier, until: expires * 1_000 }, now);
  }

  #refuse(link: Link, refusal: Refusal): void {
    const agent = link.agent?.description.agent ?? link.admission.pool;
    this.record([
      createEvent({ type: 'keys', agent, action: 'refused', detail: refusal.detail ?? refusal.reason }, Date.now()),
    ]);
    const detail = publicText(refusal);
    this.#refused.add({ ...link.admission, why: detail }, Date.now());
    this.#say(link, { type: 'refusal', reason: refusal.reason, detail });
    link.socket.close(refusals[refusal.reason].close, refusal.reason);
    this.#drop(link, refusal.reason);
  }

  #drop(link: Link, detail: string): void {
    this.#strangers.delete(link);
    const name = link.agent?.description.agent;
    // A newer connection of the same agent may have replaced this one.
    if (name === undefined || this.#links.get(name) !== link) return;
    this.#links.delete(name);
    if (link.agent?.load) this.#gone.add(entryOf(link.agent, link.agent.load), Date.now());
    this.record([createEvent({ type: 'keys', agent: name, action: 'gone', detail }, Date.now())]);
  }

  #say(link: Link, message: RosterMessage): void {
    try {
      link.socket.send(JSON.stringify(message));
    } catch {
      // The agent has closed the socket; its close event handles that.
    }
  }
}

const digest = (attestation: string): string => createHash('sha256').update(attestation).digest('base64url');

const entryOf = ({ description, attestation, heard, release }: Agent, load: Load): RosterEntry => ({
  description,
  attestation,
  load,
  heard,
  ...(release !== undefined && { release }),
});
