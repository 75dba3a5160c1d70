// Decides about a request with an Idempotency-Key (draft-ietf-httpapi-idempotency-key-header). A gate stores, for a day,
// the id and the zone under which the first request with a key is carried out; a repeated one gets the same, so that the
// functions find what the first has made. Pure.

/** Life of a stored key: a day, as long as the address of a grant can be written to. */
export const IDEMPOTENCY_KEY_S = 24 * 3600;
/**
 * Time after which the key of a request lost with its isolate is free again: longer than a call to functions
 * with its probe.
 */
export const IDEMPOTENCY_RUN_MS = 15_000;

/** A key as a gate stores it. */
export interface StoredKey {
  /** Digest of the request. */
  readonly fingerprint: string;
  readonly id: string;
  readonly zone: string;
  /** Epoch ms of the first request. */
  readonly at: number;
  /** Epoch ms until which a request with the key runs; 0 when none does. */
  readonly runsUntil: number;
  /** Fencing token of its latest run; absent in a key that an older isolate claimed. */
  readonly run?: string | undefined;
  /** A request with the key may have been carried out: its outcome is unknown. */
  readonly tried: boolean;
  /** A request with the key was carried out. */
  readonly done: boolean;
  /** Digest of the file that passed through the edge. */
  readonly content?: string | undefined;
}

export interface KeyClaim {
  /** Digest of the subject and its key. */
  readonly key: string;
  readonly fingerprint: string;
  /** Unique name of the claiming run. */
  readonly run?: string | undefined;
  /** Placement of a first request; absent when no zone can carry it out. */
  readonly proposed: Pick<StoredKey, 'id' | 'zone'> | undefined;
}

export type KeyDecision =
  /** Run the request under this id; a repeat if `done`. `content` is that of the first request. */
  | { readonly kind: 'run'; id: string; zone: string; done: boolean; content: string | undefined }
  /** `unplaced`: a first request that no zone can carry out. */
  | { readonly kind: 'running' | 'reused' | 'unplaced' };

/** Outcome of a request with a key. A refused request leaves nothing, so its key is free again. */
export type KeyOutcome = 'done' | 'refused' | 'unknown';

const LIFETIME_MS = IDEMPOTENCY_KEY_S * 1_000;

/** Decides a claim, and the key to store where the request is to run. */
export function claimKey(
  stored: StoredKey | undefined,
  { fingerprint, run, proposed }: KeyClaim,
  now: number,
): { readonly decision: KeyDecision; readonly store?: StoredKey } {
  const known = stored && now - stored.at < LIFETIME_MS ? stored : undefined;
  if (known && known.fingerprint !== fingerprint) return { decision: { kind: 'reused' } };
  if (known && known.runsUntil > now) return { decision: { kind: 'running' } };
  const first = proposed && {
    ...proposed,
    fingerprint,
    at: now,
    runsUntil: 0,
    tried: false,
    done: false,
    content: undefined,
  };
  // A request without an outcome was lost with its isolate.
  const next = known ? { ...known, tried: known.tried || known.runsUntil > 0 } : first;
  if (!next) return { decision: { kind: 'unplaced' } };
  const { id, zone, done, content } = next;
  return {
    decision: { kind: 'run', id, zone, done, content },
    store: { ...next, run, runsUntil: now + IDEMPOTENCY_RUN_MS },
  };
}

/** Reports whether a run still holds its key: it has not ended, and no later run has claimed the key. */
export const holdsKey = (stored: StoredKey | undefined, run: string | undefined): stored is StoredKey =>
  stored !== undefined && stored.run === run && stored.runsUntil > 0;

/** Returns the key after its request has ended; `undefined` when it is free. */
export function endKey(stored: StoredKey, outcome: KeyOutcome, content?: string): StoredKey | undefined {
  const ended = { ...stored, runsUntil: 0 };
  if (outcome === 'done') return { ...ended, done: true, content: content ?? stored.content };
  if (outcome === 'unknown') return { ...ended, tried: true };
  // A refusal of a repeat says nothing of the first request.
  return stored.done || stored.tried ? ended : undefined;
}
