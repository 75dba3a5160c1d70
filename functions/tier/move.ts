// The move of a blob to another tier, as data: each state says what to do next, so that a worker that finds a stored
// record resumes it after a crash at any point. A move is a copy under another name: storage cannot be read during a
// change of tier in place, and Microsoft advises a copy for a return from archive.
//
//   requested ──copy begun──► copying ──copy whole──► verified ──row swapped──► committed ──source deleted──► (no record)
//       ▲                        │
//       └──────── copy failed, gone or other bytes: again, under a new name, until it is given up
//
// The blob is read at `source` until the row is swapped and at `target` from then on; the other one is deleted only in a
// state that does not read it. So some tier has the bytes at every point.
import type { BlobTier, RehydratePriority } from '../../shared/registry/model-files.ts';

export type MoveState = 'requested' | 'copying' | 'verified' | 'committed';

export interface BlobMoveRecord {
  readonly digest: string;
  readonly bytes: number;
  readonly from: BlobTier;
  readonly to: BlobTier;
  readonly priority?: RehydratePriority;
  /** Names of the blob that is there and of its copy; a retry copies to a new name. */
  readonly source: string;
  readonly target: string;
  readonly state: MoveState;
  readonly tries: number;
}

/** Act of the worker in a state. Each may be repeated: the second time it finds its own work and reports it. */
export type Act = 'copy' | 'check-copy' | 'swap-row' | 'delete-source';

export const actOf: Readonly<Record<MoveState, Act>> = {
  requested: 'copy',
  copying: 'check-copy',
  verified: 'swap-row',
  committed: 'delete-source',
};

export type MoveEvent =
  | { readonly type: 'copy-begun' }
  /** The service reports the copy complete, with the length and digest that were stored with it. */
  | { readonly type: 'copy-whole'; readonly bytes: number; readonly digest: string }
  | { readonly type: 'copy-failed'; readonly nextTarget: string }
  | { readonly type: 'row-swapped' }
  | { readonly type: 'source-deleted' };

/** Tries after which a move is given up: the blob stays where it is, and the next decision may ask again. */
export const MOVE_TRIES_MAX = 5;

export type Followed =
  | { readonly next: BlobMoveRecord }
  /** The move is over; `abandoned` names the copy that is left to delete. */
  | { readonly over: 'moved' | 'given-up'; readonly abandoned?: string };

/** Returns the record after an event, `undefined` when it says nothing new. */
export function followMove(record: BlobMoveRecord, event: MoveEvent): Followed | undefined {
  const { state, digest, bytes } = record;
  switch (event.type) {
    case 'copy-begun':
      return state === 'requested' ? { next: { ...record, state: 'copying' } } : undefined;
    case 'copy-whole':
      if (state !== 'copying') return undefined;
      // Other bytes are never committed: the worker reports them as a copy that failed.
      return event.bytes === bytes && event.digest === digest ? { next: { ...record, state: 'verified' } } : undefined;
    case 'copy-failed':
      if (state !== 'requested' && state !== 'copying') return undefined;
      if (record.tries + 1 >= MOVE_TRIES_MAX) return { over: 'given-up', abandoned: record.target };
      return { next: { ...record, state: 'requested', target: event.nextTarget, tries: record.tries + 1 } };
    case 'row-swapped':
      return state === 'verified' ? { next: { ...record, state: 'committed' } } : undefined;
    case 'source-deleted':
      return state === 'committed' ? { over: 'moved' } : undefined;
  }
}

/** Returns the name under which the blob is read in a state. */
export const readAt = ({ state, source, target }: BlobMoveRecord): string => (state === 'committed' ? target : source);
