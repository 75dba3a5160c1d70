import { limits } from '../../shared/limits.ts';

/**
 * Followers of each tenant in this isolate, with their expiry: each holds a request to the functions open.
 */
const followers = new Map<string, Map<object, number>>();

/** Age after which a follower's slot is free, ms: its client does not read, and it makes no request. */
const QUIET_MS = 3 * limits.uploadWaitSeconds.value * 1_000;

export interface FollowerPlace {
  /** Notes that the client still reads. */
  touch(): void;
  leave(): void;
}

/** Adds a follower; `undefined` when the tenant has its maximum. */
export function followAs(tenant: string, now: () => number): FollowerPlace | undefined {
  const own = followers.get(tenant) ?? new Map<object, number>();
  for (const [one, until] of own) if (until <= now()) own.delete(one);
  if (own.size >= limits.uploadFollowers.value) return undefined;
  followers.set(tenant, own);
  const self = {};
  own.set(self, now() + QUIET_MS);
  return {
    touch: () => void own.set(self, now() + QUIET_MS),
    leave() {
      own.delete(self);
      if (own.size === 0 && followers.get(tenant) === own) followers.delete(tenant);
    },
  };
}
