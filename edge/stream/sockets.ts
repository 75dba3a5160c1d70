import { limits } from '../../shared/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import type { Claims } from '../../shared/tenant/claims.ts';

/** Key of callers whose token was refused. */
const ANONYMOUS = '';

/** A set of sockets for each tenant. An entry expires: a Durable Object that broke removes none. */
class SocketSets {
  readonly #tenants = new Map<string, Map<object, number>>();
  readonly #lifeMs: number;

  constructor(lifeMs: number) {
    this.#lifeMs = lifeMs;
  }

  add(tenant: string, socket: object, now: number): void {
    const own = this.#tenants.get(tenant) ?? new Map<object, number>();
    this.#tenants.set(tenant, own.set(socket, now));
  }

  delete(tenant: string, socket: object): void {
    const own = this.#tenants.get(tenant);
    if (own?.delete(socket) && own.size === 0) this.#tenants.delete(tenant);
  }

  count(tenant: string, now: number): number {
    const own = this.#tenants.get(tenant);
    if (!own) return 0;
    for (const [socket, at] of own) {
      if (now - at <= this.#lifeMs) break;
      own.delete(socket);
    }
    return own.size;
  }
}

/**
 * Sockets in this isolate that hold no slot of their tenant's allowance: no session was started on them, or their
 * client has not answered a close frame. Each costs memory of this isolate. Plain data.
 */
export class Sockets {
  readonly #unstarted = new SocketSets(limits.streamVoiceMs.value + limits.streamSilenceMs.value);
  readonly #closing = new SocketSets(limits.streamUnansweredMs.value + limits.streamSilenceMs.value);

  /** Counts a socket until it starts a session. Refuses it when the tenant has as many as it may have requests. */
  open({ tenant, allowance }: Claims, socket: object, now: number): Refusal | undefined {
    const limit = slotsOf(allowance);
    if (this.#unstarted.count(tenant, now) >= limit) return refuse('allowance_concurrent', { limit });
    this.#unstarted.add(tenant, socket, now);
    return undefined;
  }

  /** The socket has started a session, or is closing. */
  started({ tenant }: Claims, socket: object): void {
    this.#unstarted.delete(tenant, socket);
  }

  /** Counts a socket from its close frame until its close event. */
  closing(claims: Claims | undefined, socket: object, now: number): void {
    this.#closing.add(claims?.tenant ?? ANONYMOUS, socket, now);
  }

  closed(claims: Claims | undefined, socket: object): void {
    this.#closing.delete(claims?.tenant ?? ANONYMOUS, socket);
  }

  /** Refuses another socket while too many of the tenant are closing. */
  full(claims: Claims | undefined, now: number): Refusal | undefined {
    const limit = slotsOf(claims?.allowance);
    const closing = this.#closing.count(claims?.tenant ?? ANONYMOUS, now);
    if (closing < limit + limits.streamClosingSockets.value) return undefined;
    return refuse('allowance_concurrent', { limit });
  }
}

/** The sockets of this isolate. */
export const sockets = new Sockets();

const slotsOf = (allowance?: Claims['allowance']): number => allowance?.requestsAtOnce ?? limits.requestsAtOnce.value;
