import type { ModelDescription } from '../../shared/pool/description.ts';
import type { RosterEntry } from '../../shared/pool/heartbeat.ts';
import type { Part } from '../../shared/registry/release.ts';
import type { RequestClass } from '../../shared/tenant/claims.ts';
import type { Place } from '../place.ts';

export interface RouteRequest {
  readonly tenant: string;
  /** Affinity key: requests of one session see one revision. */
  readonly session: string;
  /**
   * Requests of one tenant and model with the same key go to the same agent while it is there, whatever its load: the
   * next attempt then is the agent that had the key before the first one came.
   */
  readonly sticky?: string | undefined;
  readonly task: ModelDescription['task'];
  readonly model: string;
  /** BCP 47; absent or `auto` when only the audio decides. */
  readonly language?: string | undefined;
  /** Only agents that detect languages. */
  readonly detects?: boolean | undefined;
  /** Audio comes while it is spoken: only agents whose model serves live streams. */
  readonly live?: boolean | undefined;
  /** Languages the token allows; absent when any. */
  readonly allowed?: readonly string[] | undefined;
  /** Residency zones of the tenant. Nothing below ever widens them. */
  readonly zones: readonly string[];
  /** SFrame cipher suite the request is sealed with. */
  readonly suite: number;
  readonly class: RequestClass;
  /** Place of the edge; absent when it is not known. */
  readonly place?: Place | undefined;
  /** A person waits for each word: fastest accelerators first (A9). Class `realtime` implies it. */
  readonly realtime?: boolean | undefined;
  /** Revision that the session began with; the session stays with it while an agent has its files. */
  readonly revision?: string | undefined;
  /** Agents that were tried. */
  readonly exclude?: ReadonlySet<string> | undefined;
  /** Share of sessions that see a revision in stage `canary`, 0 to 1; overrides the release map. */
  readonly canaryShare?: number | undefined;
}

export interface Attempt {
  readonly entry: RosterEntry;
  /** The revision that serves the request there. */
  readonly model: ModelDescription;
  /** For the audit record: how the choice was made, without content. */
  readonly why: string;
}

/** A revision at an agent that satisfies the hard constraints. */
export interface Candidate extends Omit<Attempt, 'why'> {
  readonly agent: string;
  readonly zone: string;
  /** The roster considered it able to take work when it made the snapshot. */
  readonly able: boolean;
  /** Part of its revision in the release, and the share of sessions that a canary gets. */
  readonly part: Part;
  readonly share: number;
}
