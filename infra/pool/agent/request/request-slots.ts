import { decideAdmission, type Holding } from '../../../../shared/pool/admission.ts';
import { CLASS_SHARE } from '../../../../shared/pool/limits.ts';
import { refuse } from '../../../../shared/refusal.ts';
import { no, ok, type Result } from '../../../../shared/result.ts';
import { classes, type RequestClass } from '../../../../shared/tenant/claims.ts';

/**
 * Open requests of one agent; each holds at most 8 MiB of audio: utterances in flight and the one being cut.
 */
export const REQUESTS_IN_FLIGHT_MAX = 64;

/** A request that the agent has taken in. */
export interface RequestSlot {
  /** Aborts when a more entitled request takes the slot. */
  readonly signal: AbortSignal;
  /** The engine works on the request: the slot is its own from here on. */
  start(): void;
  leave(): void;
}

export interface RequestSlots {
  /** Takes a slot, for which a waiting request may be displaced. Refuses with `pool_busy`. */
  enter(request: Pick<Holding, 'class' | 'tenant' | 'deadline'>): Result<RequestSlot>;
  /** Open requests of this class and of more urgent ones. */
  ahead(name: RequestClass): number;
  /** Classes in which no tenant gets a slot now. */
  full(): RequestClass[];
}

interface Open extends Holding {
  waiting: boolean;
  readonly displaced: AbortController;
}

/**
 * The bounded set of open requests, shared by class and tenant (`decideAdmission`). A request waits until the engine
 * works on one of its utterances; begun ones are never displaced, so each class's share is kept free for it.
 */
export function createRequestSlots(now: () => number): RequestSlots {
  const total = REQUESTS_IN_FLIGHT_MAX;
  const capacity = { total, reserved: Math.floor(total * CLASS_SHARE), lends: false };
  const open = new Set<Open>();
  return {
    enter(request) {
      const one: Open = { ...request, size: 1, waiting: true, displaced: new AbortController() };
      const admission = decideAdmission([...open], one, capacity, now());
      if (!admission.admitted) return no(refuse('pool_busy', undefined, 'too many requests'));
      for (const victim of admission.displaced) {
        open.delete(victim);
        victim.displaced.abort();
      }
      open.add(one);
      return ok({
        signal: one.displaced.signal,
        start() {
          one.waiting = false;
        },
        leave: () => void open.delete(one),
      });
    },
    full() {
      const at = now();
      // A tenant without a slot is the most entitled of its class.
      const admits = (name: RequestClass) =>
        decideAdmission([...open], { class: name, tenant: '', size: 1 }, capacity, at).admitted;
      return classes.filter((name) => !admits(name));
    },
    ahead(name) {
      const urgent = classes.slice(0, classes.indexOf(name) + 1);
      return [...open].filter((one) => urgent.includes(one.class)).length;
    },
  };
}
