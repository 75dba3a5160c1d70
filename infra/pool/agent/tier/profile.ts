// Hourly profile of a language (A27): the requests of each hour of the day (UTC), averaged over days. It tells that a
// language's traffic is about to rise, which a rate of the past cannot.

const HOUR_MS = 3_600_000;
const HOURS = 24;
/** Share of the newest day in an hour's average: a change of habit is learned in about three days. */
const NEWEST = 0.5;

export interface Profile {
  /** Requests in each hour of the day, averaged; `undefined` for an hour that was not observed yet. */
  readonly hours: readonly (number | undefined)[];
  /** The hour being counted, in hours since 1970, and its requests so far. */
  readonly hour: number;
  readonly count: number;
}

export const startProfile = (now: number): Profile => ({
  hours: new Array<number | undefined>(HOURS).fill(undefined),
  // The hour in which an agent starts is observed in part only: counting begins with the next.
  hour: Math.floor(now / HOUR_MS),
  count: Number.NaN,
});

/** Closes the hours that have passed; an hour without a request counts as zero. */
export function advanceProfile(profile: Profile, now: number): Profile {
  const current = Math.floor(now / HOUR_MS);
  if (current <= profile.hour) return profile;
  const hours = [...profile.hours];
  // After an absence of more than a day each hour of it was silent once; more rounds would say the same.
  for (let hour = profile.hour; hour < Math.min(current, profile.hour + HOURS); hour += 1) {
    const count = hour === profile.hour ? profile.count : 0;
    if (Number.isNaN(count)) continue;
    const before = hours[hour % HOURS];
    hours[hour % HOURS] = before === undefined ? count : before + NEWEST * (count - before);
  }
  return { hours, hour: current, count: 0 };
}

/** Closes the hours that have passed in each profile. */
export const advanceProfiles = (profiles: ReadonlyMap<string, Profile>, now: number): ReadonlyMap<string, Profile> =>
  new Map([...profiles].map(([language, profile]) => [language, advanceProfile(profile, now)]));

export function addToProfile(profile: Profile, now: number): Profile {
  const open = advanceProfile(profile, now);
  return { ...open, count: open.count + 1 };
}

/** Returns requests per second expected at `at`; `undefined` for an hour that was never observed. */
export function expectedAt({ hours }: Profile, at: number): number | undefined {
  const count = hours[Math.floor(at / HOUR_MS) % HOURS];
  return count === undefined ? undefined : (count * 1_000) / HOUR_MS;
}
