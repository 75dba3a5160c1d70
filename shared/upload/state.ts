// The state of an upload, and what moves it. Events arrive at least once and in any order; a row is written only if the
// event says something new, so that every repetition is harmless. States only move forward within a run; a run is begun
// by a person, never by an accident.
import type { Refusal } from '../refusal.ts';
import type { JobKind } from './job.ts';

/**
 * granted: the address was given; nothing is there yet.
 * uploaded: the file is there, and not looked at. admitted: it may be worked on; a `plan` job is wanted.
 * planned: it has been cut. working: some pieces are done. merging: all are; a `merge` job is wanted.
 * done: there is a transcript. refused: there is none, for a reason. cancelled, expired: nobody waits for one.
 */
export const uploadStatuses = [
  'granted',
  'uploaded',
  'admitted',
  'planned',
  'working',
  'merging',
  'done',
  'refused',
  'cancelled',
  'expired',
] as const;
export type UploadStatus = (typeof uploadStatuses)[number];

export interface UploadState {
  readonly status: UploadStatus;
  /** From 1; each run of the same audio has outcomes of its own. */
  readonly run: number;
  /** Rises by one with every change: what news are asked for by. */
  readonly seq: number;
  /** Size and version of the file as it was taken. */
  readonly bytes?: number | undefined;
  readonly etag?: string | undefined;
  /** How many pieces there are; 0 until that is known. */
  readonly pieces: number;
  /** Which of them are done, in rising order. */
  readonly done: readonly number[];
  /** Seconds of sound. */
  readonly seconds?: number | undefined;
  readonly warnings: readonly string[];
  readonly refusal?: Refusal | undefined;
}

export type UploadEvent =
  | { readonly type: 'arrived'; readonly bytes: number; readonly etag: string }
  | { readonly type: 'admitted' }
  | {
      readonly type: 'planned';
      readonly run: number;
      readonly pieces: number;
      readonly seconds?: number | undefined;
      readonly warnings?: readonly string[] | undefined;
    }
  | { readonly type: 'recognised'; readonly run: number; readonly piece: number }
  | {
      readonly type: 'merged';
      readonly run: number;
      readonly seconds?: number | undefined;
      readonly warnings?: readonly string[] | undefined;
    }
  | { readonly type: 'refused'; readonly run: number; readonly refusal: Refusal }
  | { readonly type: 'cancelled' }
  /** The time for uploading is over. */
  | { readonly type: 'expired' }
  | { readonly type: 'rerun' };

export const newState: UploadState = { status: 'granted', run: 1, seq: 1, pieces: 0, done: [], warnings: [] };

type Ends = 'done' | 'refused' | 'cancelled' | 'expired';
const ENDS: ReadonlySet<UploadStatus> = new Set<Ends>(['done', 'refused', 'cancelled', 'expired']);
export const isOver = (status: UploadStatus): boolean => ENDS.has(status);

/**
 * Which status follows; what is missing changes nothing. `recount` is decided by the pieces that are known and done:
 * their number and their results come in any order.
 */
const moves: Readonly<Record<UploadStatus, Partial<Record<UploadEvent['type'], UploadStatus | 'recount'>>>> = {
  granted: { arrived: 'uploaded', refused: 'refused', cancelled: 'cancelled', expired: 'expired' },
  uploaded: { admitted: 'admitted', refused: 'refused', cancelled: 'cancelled' },
  admitted: { planned: 'recount', recognised: 'recount', merged: 'done', refused: 'refused', cancelled: 'cancelled' },
  planned: { recognised: 'recount', merged: 'done', refused: 'refused', cancelled: 'cancelled' },
  working: { recognised: 'recount', merged: 'done', refused: 'refused', cancelled: 'cancelled' },
  merging: { merged: 'done', refused: 'refused', cancelled: 'cancelled' },
  // Run again if somebody wants that and the audio is still there, which is for the caller to know.
  done: { rerun: 'admitted' },
  refused: { rerun: 'admitted' },
  cancelled: { rerun: 'admitted' },
  expired: {},
};

/** The state after the event, or `undefined` when the event says nothing new. */
export function next(state: UploadState, event: UploadEvent): UploadState | undefined {
  // An outcome of an earlier run says nothing about this one.
  if ('run' in event && event.run !== state.run) return undefined;
  const to = moves[state.status][event.type];
  if (to === undefined) return undefined;
  const seq = state.seq + 1;
  if (event.type === 'rerun') {
    if (state.etag === undefined) return undefined;
    const { refusal: _, seconds: __, ...kept } = state;
    return { ...kept, status: 'admitted', run: state.run + 1, seq, pieces: 0, done: [], warnings: [] };
  }
  const learned = learn(state, event);
  if (learned === undefined) return undefined;
  return { ...learned, status: to === 'recount' ? recount(learned) : to, seq };
}

/** The facts of an event in the state; `undefined` when they are there already. */
function learn(state: UploadState, event: UploadEvent): UploadState | undefined {
  switch (event.type) {
    case 'arrived':
      return { ...state, bytes: event.bytes, etag: event.etag };
    case 'planned': {
      const { pieces, seconds = state.seconds, warnings = state.warnings } = event;
      return { ...state, pieces, seconds, warnings, done: state.done.filter((piece) => piece < pieces) };
    }
    case 'recognised':
      // A piece that the plan does not know is nobody's result.
      if (state.done.includes(event.piece) || (state.pieces > 0 && event.piece >= state.pieces)) return undefined;
      return { ...state, done: [...state.done, event.piece].sort((a, b) => a - b) };
    case 'merged': {
      const { seconds = state.seconds, warnings = state.warnings } = event;
      // A recording of one piece is finished by its plan.
      const pieces = state.pieces || 1;
      return { ...state, seconds, warnings, pieces, done: Array.from({ length: pieces }, (_, piece) => piece) };
    }
    case 'refused':
      return { ...state, refusal: event.refusal };
    default:
      return state;
  }
}

function recount({ pieces, done }: UploadState): UploadStatus {
  if (pieces === 0) return 'admitted';
  if (done.length === pieces) return 'merging';
  return done.length === 0 ? 'planned' : 'working';
}

/** All events in turn; `undefined` when none of them says anything new. */
export function follow(state: UploadState, events: readonly UploadEvent[]): UploadState | undefined {
  const end = events.reduce((now, event) => next(now, event) ?? now, state);
  return end === state ? undefined : end;
}

export interface WantedJob {
  readonly kind: JobKind;
  readonly piece?: number;
}

/** The work that a state asks for. Empty once it is over, and before it may begin. */
export function wantedJobs(state: UploadState): WantedJob[] {
  switch (state.status) {
    case 'admitted':
      return [{ kind: 'plan' }];
    case 'planned':
    case 'working': {
      const done = new Set(state.done);
      const all = Array.from({ length: state.pieces }, (_, piece) => piece);
      return all.filter((piece) => !done.has(piece)).map((piece) => ({ kind: 'work', piece }));
    }
    case 'merging':
      return [{ kind: 'merge' }];
    default:
      return [];
  }
}
