// Limits the webhook deliveries of an instance. Receivers belong to tenants and may never answer: a tenant
// has a few deliveries in flight, and a receiver that only times out is not called for a while, so that no
// tenant waits for another's receiver.
import { Limiter } from '../../shared/limiter.ts';
import type { Posted } from './post.ts';
import { TIMED_OUT } from './post.ts';

/** Remembered hosts that did not answer webhooks: tenants choose the names, so the oldest are forgotten. */
const WEBHOOK_HOSTS_MAX = 10_000;
/** Concurrent webhooks of one tenant from one instance: half of those it takes from the queue at a time. */
export const WEBHOOKS_PER_TENANT_MAX = 8;
/** Unanswered notices in a row before the receiver is paused. */
const WEBHOOK_SILENCES_MAX = 8;
/** Pause of a receiver that only hangs; notices to it count as unanswered, and are retried. */
export const WEBHOOK_SILENCE_MS = 30_000;

export interface Place {
  /** Gives it back, with what came of it. */
  end(posted: Posted): void;
}

export interface WebhookLimiter {
  /** `full`: later. `hangs`: as if it had been called and had not answered. */
  take(tenant: string, host: string): Place | 'full' | 'hangs';
}

/** Failures in a row for want of an answer. */
interface Silence {
  readonly count: number;
  readonly until: number;
}

export function createWebhookLimiter(now: () => number): WebhookLimiter {
  const inFlight = new Limiter(WEBHOOKS_PER_TENANT_MAX);
  const silent = new Map<string, Silence>();
  const isClosed = (name: string) => (silent.get(name)?.until ?? 0) > now();

  function note(name: string, late: boolean): void {
    const count = (silent.get(name)?.count ?? 0) + 1;
    silent.delete(name);
    if (!late) return;
    const closed = count >= WEBHOOK_SILENCES_MAX;
    silent.set(name, { count, until: closed ? now() + WEBHOOK_SILENCE_MS : 0 });
    const [oldest] = silent.keys();
    if (silent.size > WEBHOOK_HOSTS_MAX && oldest !== undefined) silent.delete(oldest);
  }

  return {
    take(tenant, host) {
      // A host may be that of many tenants: what one of them finds there says nothing of it to the others.
      const names = [tenant, `${tenant} ${host}`];
      if (names.some(isClosed)) return 'hangs';
      const slot = inFlight.enter(tenant);
      if (!slot) return 'full';
      return {
        end(posted) {
          slot.leave();
          for (const name of names) note(name, 'failure' in posted && posted.failure === TIMED_OUT);
        },
      };
    },
  };
}
