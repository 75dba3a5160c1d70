import { limits } from '../../shared/limits.ts';

/** One that is followed holds a question at the functions open; how many of a tenant this isolate has, and until when. */
const followers = new Map<string, Map<object, number>>();

/** A place that nobody touched for so long is of a client that does not read: it asks for nothing. */
const QUIET_MS = 3 * limits.uploadWaitSeconds.value * 1_000;

export interface FollowerPlace {
  /** It is still read. */
  touch(): void;
  leave(): void;
}

/** `undefined`: the tenant has as many as it may. */
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
