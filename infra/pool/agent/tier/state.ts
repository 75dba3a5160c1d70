// The agent's tiers, fastest first: gpu (what an engine has loaded; on a machine without a GPU, its memory), ram (page
// cache or tmpfs), ssd (the store of verified files) and blob, which has everything. A model in gpu or ram is in ssd too.
import type { Profile } from './profile.ts';
import type { Rate } from './rate.ts';

export type Tier = 'gpu' | 'ram' | 'ssd' | 'blob';
/** A tier of the agent's own, with a bound. */
export type Held = Exclude<Tier, 'blob'>;

export interface TierModel {
  /** Model and revision. */
  readonly id: string;
  readonly language: string;
  /** Measured memory that it takes on a device. */
  readonly gpuBytes: number;
  /** Its files. */
  readonly fileBytes: number;
  /** Measured seconds from a load's start to the first inference, by the tier that the bytes come from. */
  readonly loadSeconds: Readonly<Record<'ram' | 'ssd' | 'blob', number>>;
  /** Requests with a short half-life, for gpu and ram. */
  readonly rate: Rate;
  /** Requests with a long half-life, for ssd and for the model's share of its language. */
  readonly slowRate: Rate;
  /** Arrival of the oldest request that waits for a load, epoch ms. */
  readonly waitingSince?: number;
  /** Inferences and streams in progress. */
  readonly leases: number;
  /** The tier it never falls below: gpu for a stable alias, ram for a roll-back target. */
  readonly floor?: Tier;
  /** The release names it as canary or grey. */
  readonly needed?: boolean;
  /** Device that has loaded it, and since when (epoch ms). */
  readonly device?: string;
  readonly deviceSince?: number;
  readonly inRam: boolean;
  readonly inSsd: boolean;
}

export interface Device {
  readonly id: string;
  readonly bytes: number;
  /** Model being loaded. One load at a time: two share the bus, and both requests wait longer. */
  readonly loading?: string;
}

export interface TierState {
  readonly models: readonly TierModel[];
  readonly devices: readonly Device[];
  readonly ramBytes: number;
  readonly ssdBytes: number;
  /** Copy to ram or ssd in progress; one at a time. */
  readonly copying?: { readonly model: string; readonly tier: 'ram' | 'ssd' };
  /** By language. */
  readonly profiles: ReadonlyMap<string, Profile>;
  readonly settings: TierSettings;
}

export interface TierSettings {
  /** Advance of the profile: a language's models are loaded so long before its hour, ms. */
  readonly leadMs: number;
  /** A resident is not replaced by anticipation before it was resident so long, ms. */
  readonly minResidencyMs: number;
  /** Factor by which a candidate without a waiting request must exceed its victims. */
  readonly hysteresis: number;
  /** Anticipation loads a model that expects a request within so long, ms. */
  readonly horizonMs: number;
  /** Share of a rise above the observed rate, as the profile expects it, that is believed. */
  readonly profileShare: number;
}

/** Measured by `npm run bench -- tiers`. */
export const tierSettings: TierSettings = {
  leadMs: 600_000,
  minResidencyMs: 60_000,
  hysteresis: 1.5,
  horizonMs: 300_000,
  profileShare: 0.5,
};

/** Half-lives of `rate` and `slowRate`. */
export const RATE_HALF_LIFE_MS = 3_600_000;
export const SLOW_HALF_LIFE_MS = 24 * 3_600_000;
