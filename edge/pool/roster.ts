import { DurableObject } from 'cloudflare:workers';
import type { AuditEvent } from '../../shared/audit/event.ts';
import { limits } from '../../shared/limits.ts';
import type { RosterEntry, RosterMessage, Snapshot } from '../../shared/pool/heartbeat.ts';
import { type Refusal, refusals } from '../../shared/refusal.ts';
import { verifyAttestation } from '../../shared/seal/attestation.ts';
import { mint } from '../audit/mint.ts';
import { Outbox, type OutboxPage } from '../audit/outbox.ts';
import { type Bindings, readSettings } from '../settings.ts';
import { type Admission, type Agent, readHello, readMessage } from './agent-link.ts';

/** Messages of one socket that wait for the one before; an agent speaks once a second. */
const WAITING_MAX = 16;

interface Link {
  readonly socket: RuntimeSocket;
  readonly admission: Admission;
  agent: Agent | undefined;
  /** The message being read and those behind it: signatures take time, order matters. */
  tail: Promise<void>;
  waiting: number;
}

/**
 * The agents of one zone that are alive, as they say themselves in signed reports.
 *
 * Sockets are accepted without hibernation: every agent speaks each second, so the object would never sleep, and
 * state in memory is rebuilt by the agents themselves, who come back with a hello within a second of a restart.
 * Meanwhile isolates go on with their last snapshot. The outbox of audit events is on disk.
 */
export class Roster extends DurableObject<Bindings> {
  readonly #links = new Map<string, Link>();
  /** Last boot and number heard by agent; outlives sockets so that nothing can be replayed on a new one. */
  readonly #heard = new Map<string, { boot: string; seq: number }>();
  readonly #outbox: Outbox;

  constructor(ctx: DurableObjectState, env: Bindings) {
    super(ctx, env);
    this.#outbox = new Outbox(ctx.storage.sql);
  }

  /** A WebSocket of an agent; the Worker has verified its token and says in headers whose it is. */
  async fetch(request: Request): Promise<Response> {
    const admission = {
      pool: request.headers.get('auricle-pool') ?? '',
      zone: request.headers.get('auricle-zone') ?? '',
    };
    const pair = new WebSocketPair();
    const link: Link = { socket: pair[1], admission, agent: undefined, tail: Promise.resolve(), waiting: 0 };
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

  /** The agents heard lately, with what they last reported. */
  snapshot(): Snapshot {
    const now = Date.now();
    const entries: RosterEntry[] = [];
    for (const { agent } of this.#links.values()) {
      if (!agent?.load || now - agent.heard > limits.heartbeatGoneMs.value || agent.expires * 1_000 <= now) continue;
      const { description, attestation, load, heard } = agent;
      entries.push({ description, attestation, load, heard });
    }
    return { zone: this.ctx.id.name ?? '', at: now, entries };
  }

  outbox(after: number, limit: number): OutboxPage {
    return this.#outbox.page(after, limit);
  }

  record(events: readonly AuditEvent[]): void {
    if (events.length > 0) this.ctx.storage.transactionSync(() => this.#outbox.add(events, Date.now()));
  }

  #queue(link: Link, data: string | ArrayBuffer): void {
    if (typeof data !== 'string' || link.waiting >= WAITING_MAX) {
      link.socket.close(refusals.heartbeat_invalid.close, 'heartbeat_invalid');
      this.#drop(link, 'flooded or not text');
      return;
    }
    link.waiting += 1;
    link.tail = link.tail
      .then(() => this.#read(link, data))
      .catch((error: unknown) => {
        console.error('roster', error instanceof Error ? error.name : 'unknown error');
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
    const hello = await readHello(text, link.admission, attest, (agent) => this.#heard.get(agent), now);
    if (!hello.ok) return this.#refuse(link, hello.refusal);
    const agent = hello.value;
    const name = agent.description.agent;
    if (!this.#links.has(name) && this.#links.size >= limits.rosterAgents.value) {
      return this.#refuse(link, { reason: 'pool_busy', detail: 'the roster is full' });
    }
    const before = this.#links.get(name);
    if (before) before.socket.close(1000, 'replaced by a newer connection');
    link.agent = agent;
    this.#links.set(name, link);
    this.#heard.set(name, { boot: agent.boot, seq: agent.seq });
    this.record([mint({ type: 'keys', agent: name, action: 'attested' }, now)]);
    this.#say(link, { type: 'welcome', intervalMs: limits.heartbeatMs.value });
  }

  async #readNext(link: Link, agent: Agent, text: string): Promise<void> {
    // A socket that was replaced may have messages under way; they are older than what is known.
    if (this.#links.get(agent.description.agent) !== link) return;
    const read = await readMessage(text, agent, Date.now());
    if (!read.ok) return this.#refuse(link, read.refusal);
    const { agent: next, events, ack } = read.value;
    link.agent = next;
    this.#heard.set(next.description.agent, { boot: next.boot, seq: next.seq });
    this.record(events);
    if (ack !== undefined) this.#say(link, { type: 'ack', seq: ack });
  }

  #refuse(link: Link, refusal: Refusal): void {
    const agent = link.agent?.description.agent ?? link.admission.pool;
    this.record([
      mint({ type: 'keys', agent, action: 'refused', detail: refusal.detail ?? refusal.reason }, Date.now()),
    ]);
    this.#say(link, { type: 'refusal', reason: refusal.reason });
    link.socket.close(refusals[refusal.reason].close, refusal.reason);
    this.#drop(link, refusal.reason);
  }

  #drop(link: Link, detail: string): void {
    const name = link.agent?.description.agent;
    // A newer connection of the same agent may have taken the place already.
    if (name === undefined || this.#links.get(name) !== link) return;
    this.#links.delete(name);
    this.record([mint({ type: 'keys', agent: name, action: 'gone', detail }, Date.now())]);
  }

  #say(link: Link, message: RosterMessage): void {
    link.socket.send(JSON.stringify(message));
  }
}
