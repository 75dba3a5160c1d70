import { type Refusal, refuse } from '../../shared/refusal.ts';
import type { Claims } from '../../shared/tenant/claims.ts';
import { REQUESTS_CONCURRENT } from '../limits.ts';

/**
 * Closing sockets of one tenant in one isolate, beyond REQUESTS_CONCURRENT; with more an upgrade is refused
 * over HTTP.
 */
export const CLOSING_SOCKETS_MAX = 64;

/** Key of callers whose token was refused. */
const ANONYMOUS = '';

/**
 * A set of sockets for each tenant. References are weak: a Durable Object that the platform destroys removes none, and
 * its sockets count until their memory is collected.
 */
class SocketSets {
  readonly #tenants = new Map<string, Set<WeakRef<object>>>();

  /** Number of tenants with an entry. */
  get size(): number {
    return this.#tenants.size;
  }

  add(tenant: string, socket: object): void {
    const own = this.#tenants.get(tenant) ?? new Set<WeakRef<object>>();
    this.#tenants.set(tenant, own.add(new WeakRef(socket)));
  }

  delete(tenant: string, socket: object): void {
    this.#sweep(tenant, socket);
  }

  count(tenant: string): number {
    return this.#sweep(tenant);
  }

  /** Removes `closed` and collected sockets. Returns how many are left. */
  #sweep(tenant: string, closed?: object): number {
    const own = this.#tenants.get(tenant);
    if (!own) return 0;
    for (const reference of own) {
      const socket = reference.deref();
      if (!socket || socket === closed) own.delete(reference);
    }
    if (own.size === 0) this.#tenants.delete(tenant);
    return own.size;
  }
}

/**
 * Sockets in this isolate that hold no slot of their tenant's allowance: no session was started on them, or their
 * client has not answered a close frame. Each costs memory of this isolate. Plain data.
 */
export class Sockets {
  readonly #unstarted = new SocketSets();
  readonly #closing = new SocketSets();

  /** Number of entries of tenants, which is 0 when no socket is open. */
  get size(): number {
    return this.#unstarted.size + this.#closing.size;
  }

  /** Counts a socket until it starts a session. Refuses it when the tenant has as many as it may have requests. */
  open({ tenant, allowance }: Claims, socket: object): Refusal | undefined {
    const limit = slotsOf(allowance);
    if (this.#unstarted.count(tenant) >= limit) return refuse('allowance_concurrent', { limit });
    this.#unstarted.add(tenant, socket);
    return undefined;
  }

  /** Stops counting a socket that has started a session, or is closing. */
  release({ tenant }: Claims, socket: object): void {
    this.#unstarted.delete(tenant, socket);
  }

  /** Counts a socket from its close frame until its close event, or until the edge ends its object. */
  closing(claims: Claims | undefined, socket: object): void {
    this.#closing.add(claims?.tenant ?? ANONYMOUS, socket);
  }

  closed(claims: Claims | undefined, socket: object): void {
    this.#closing.delete(claims?.tenant ?? ANONYMOUS, socket);
  }

  /** Returns a refusal while too many sockets of the tenant are closing. */
  checkClosing(claims: Claims | undefined): Refusal | undefined {
    const limit = slotsOf(claims?.allowance);
    const closing = this.#closing.count(claims?.tenant ?? ANONYMOUS);
    if (closing < limit + CLOSING_SOCKETS_MAX) return undefined;
    return refuse('allowance_concurrent', { limit });
  }
}

/** The sockets of this isolate. */
export const sockets = new Sockets();

const slotsOf = (allowance?: Claims['allowance']): number => allowance?.requestsAtOnce ?? REQUESTS_CONCURRENT;
