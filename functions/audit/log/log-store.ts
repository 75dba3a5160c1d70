// The one interface to where logs are kept, as narrow as the promises that the sequencer needs.

/**
 * `log`: what is written once and never again, under a lock of years. `state`: what changes. `intake`: deliveries that are
 * not in a log yet. `sidecar`: what leaves hide, encrypted. `exports`: bundles, for a week.
 */
export const areas = ['log', 'state', 'intake', 'sidecar', 'exports'] as const;
export type Area = (typeof areas)[number];

export interface StoredFile {
  readonly bytes: Uint8Array;
  /** Changes with every write. */
  readonly version: string;
}

/** After an exception the outcome of the call is unknown. */
export interface LogStore {
  read(area: Area, name: string): Promise<StoredFile | undefined>;
  /** `false` when something has that name. */
  create(area: Area, name: string, bytes: Uint8Array): Promise<boolean>;
  /** `false` when it is not as it was read. */
  replace(area: Area, name: string, bytes: Uint8Array, version: string): Promise<boolean>;
  /** Names that begin with `prefix`, by rising name, at most `limit`. */
  list(area: Area, prefix: string, limit: number): Promise<string[]>;
  /** Does nothing when it is not there. Never called for the area `log`. */
  remove(area: Area, name: string): Promise<void>;
  /**
   * Reports whether an immutability policy covers the area `log`, locked or not; `undefined` when storage
   * does not say.
   */
  isLocked?(): Promise<boolean | undefined>;
  /**
   * Returns the current time of storage, from the date of the last `read`, in ms since 1970; `undefined`
   * when storage sends no date.
   */
  clock?(): number | undefined;
}

/** Holds a name against others, for a while. */
export interface Leases {
  /**
   * Acquires the lease, or renews it with the `id` of an earlier call; `undefined` when another process has
   * it.
   */
  hold(name: string, seconds: number, id: string | undefined): Promise<string | undefined>;
  release(name: string, id: string): Promise<void>;
}
