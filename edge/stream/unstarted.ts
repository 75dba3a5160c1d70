import { limits } from '../../shared/limits.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import type { Claims } from '../../shared/tenant/claims.ts';

/**
 * Connections in this isolate that have not said what they want, tenant by tenant, and when each came. They hold no place
 * in the allowance, and what they cost is memory of this isolate: so they are counted here. Plain data; what an object
 * left behind that broke goes when it would have been sent away.
 */
export class Unstarted {
  readonly #tenants = new Map<string, Map<object, number>>();

  /** Notes one; refuses it when the tenant has as many as it may have requests. */
  enter({ tenant, allowance }: Claims, connection: object, now: number): Refusal | undefined {
    const most = allowance.requestsAtOnce ?? limits.requestsAtOnce.value;
    const own = this.#tenants.get(tenant) ?? new Map<object, number>();
    for (const [one, at] of own) {
      if (now - at <= limits.streamVoiceMs.value + limits.streamSilenceMs.value) break;
      own.delete(one);
    }
    if (own.size >= most) return refuse('allowance_concurrent', { limit: most });
    this.#tenants.set(tenant, own.set(connection, now));
    return undefined;
  }

  /** It has started, or is gone. */
  leave({ tenant }: Claims, connection: object): void {
    const own = this.#tenants.get(tenant);
    if (own?.delete(connection) && own.size === 0) this.#tenants.delete(tenant);
  }
}
