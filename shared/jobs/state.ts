// The state of an upload, and what moves it. Events arrive at least once and in any order; a row is written only if the
// event says something new, so that every repetition is harmless. States only move forward within a run; a run is begun
// by a person, never by an accident.
import type { Refusal } from '../refusal.ts';
import type { Edits, JobKind } from './job.ts';

/** Waiting or queued jobs of one document: as many may end as begin in one transaction, which takes 100. */
const PROJECT_JOBS_MAX = 40;

/**
 * Statuses of an upload.
 *
 * granted: the address was issued; no file yet.
 * uploaded: the file is stored but unchecked. admitted: it may be processed; a `detect` or `plan` job is wanted.
 * planned: the file is split. working: some pieces are done. merging: all are; a `merge` job is wanted.
 * done: a transcript exists. refused: it does not, for a reason. cancelled, expired: no result is wanted.
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

/** A language that an agent detected, and the model that serves it. */
export interface Detected {
  /** BCP 47; `zxx` for a recording without speech. */
  readonly language: string;
  /** Probability, 0 to 1. */
  readonly confidence?: number | undefined;
  readonly model: string;
}

export interface UploadState {
  readonly status: UploadStatus;
  /** Number of the run, from 1; each run of the same audio has outcomes of its own. */
  readonly run: number;
  /** Rises by one with every change; clients wait for news by it. */
  readonly seq: number;
  /** The language is to be detected before the file is split. */
  readonly detects?: true | undefined;
  readonly detected?: Detected | undefined;
  /** Size and version of the file as it was taken. */
  readonly bytes?: number | undefined;
  readonly etag?: string | undefined;
  /** Number of pieces; 0 until it is known. */
  readonly pieces: number;
  /** Finished pieces in ascending order. */
  readonly done: readonly number[];
  /** Seconds of sound. */
  readonly seconds?: number | undefined;
  readonly warnings: readonly string[];
  readonly refusal?: Refusal | undefined;
  /** Kind, when it is no upload: text is spoken in the same steps, and may be changed afterwards. */
  readonly of?: 'document' | 'project' | undefined;
  /** Number of segments of each block, in a document. */
  readonly blocks?: readonly number[] | undefined;
  /** Number of changes and reruns of a document; in a project the sum over its documents at its end. */
  readonly edition?: number | undefined;
  /** Edition in which a piece was made, if not the first. */
  readonly edits?: Edits | undefined;
}

export type UploadEvent =
  | { readonly type: 'arrived'; readonly bytes: number; readonly etag: string }
  | { readonly type: 'admitted' }
  | { readonly type: 'detected'; readonly run: number; readonly detected: Detected }
  | {
      readonly type: 'planned';
      readonly run: number;
      readonly pieces: number;
      readonly seconds?: number | undefined;
      readonly warnings?: readonly string[] | undefined;
      readonly blocks?: readonly number[] | undefined;
    }
  | { readonly type: 'recognised'; readonly run: number; readonly piece: number; readonly edition?: number }
  | {
      readonly type: 'merged';
      readonly run: number;
      readonly edition?: number;
      readonly seconds?: number | undefined;
      readonly warnings?: readonly string[] | undefined;
    }
  | { readonly type: 'refused'; readonly run: number; readonly edition?: number; readonly refusal: Refusal }
  | { readonly type: 'cancelled' }
  /** The time for uploading is over. */
  | { readonly type: 'expired' }
  | { readonly type: 'rerun' }
  /** A segment of a document has another text. */
  | { readonly type: 'edited'; readonly piece: number; readonly edition: number }
  /** All documents of a project have ended in this edition. */
  | {
      readonly type: 'gathered';
      readonly edition: number;
      readonly seconds: number;
      readonly refusal?: Refusal | undefined;
    };

export const newState: UploadState = { status: 'granted', run: 1, seq: 1, pieces: 0, done: [], warnings: [] };

export const newDocumentState: UploadState = { ...newState, of: 'document', edition: 0 };
export const newProjectState: UploadState = { ...newState, of: 'project', status: 'admitted' };

type Ends = 'done' | 'refused' | 'cancelled' | 'expired';
const ENDS: ReadonlySet<UploadStatus> = new Set<Ends>(['done', 'refused', 'cancelled', 'expired']);
export const isOver = (status: UploadStatus): boolean => ENDS.has(status);

/**
 * Decides the next status; an event without effect changes nothing. `recount` compares known with finished
 * pieces, since their number and their results come in any order.
 */
const moves: Readonly<Record<UploadStatus, Partial<Record<UploadEvent['type'], UploadStatus | 'recount'>>>> = {
  granted: { arrived: 'uploaded', refused: 'refused', cancelled: 'cancelled', expired: 'expired' },
  uploaded: { admitted: 'admitted', refused: 'refused', cancelled: 'cancelled' },
  admitted: {
    detected: 'admitted',
    planned: 'recount',
    recognised: 'recount',
    merged: 'done',
    refused: 'refused',
    cancelled: 'cancelled',
  },
  planned: { recognised: 'recount', merged: 'done', refused: 'refused', cancelled: 'cancelled' },
  working: { recognised: 'recount', merged: 'done', refused: 'refused', cancelled: 'cancelled' },
  merging: { merged: 'done', refused: 'refused', cancelled: 'cancelled' },
  // The caller checks that a rerun is wanted and the audio exists.
  done: { rerun: 'admitted' },
  refused: { rerun: 'admitted' },
  cancelled: { rerun: 'admitted' },
  expired: {},
};

/** Returns the state after the event, or `undefined` when the event has no effect. */
export function next(state: UploadState, event: UploadEvent): UploadState | undefined {
  // An outcome of an earlier run says nothing about this one.
  if ('run' in event && event.run !== state.run) return undefined;
  if (state.of === 'project') return nextOfProject(state, event);
  if (state.of === 'document' && (event.type === 'rerun' || event.type === 'edited')) return change(state, event);
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

/** Adds the facts of an event; `undefined` when the state has them already. */
function learn(state: UploadState, event: UploadEvent): UploadState | undefined {
  switch (event.type) {
    case 'arrived':
      return { ...state, bytes: event.bytes, etag: event.etag };
    case 'detected': {
      const { detects, ...known } = state;
      return detects && { ...known, detected: event.detected };
    }
    case 'planned': {
      const { pieces, seconds = state.seconds, warnings = state.warnings, blocks } = event;
      return {
        ...state,
        pieces,
        seconds,
        warnings,
        ...(blocks && { blocks }),
        done: state.done.filter((piece) => piece < pieces),
      };
    }
    case 'recognised':
      if ((event.edition ?? 0) !== (state.edits?.[event.piece] ?? 0)) return undefined;
      // A piece outside the plan does not count.
      if (state.done.includes(event.piece) || (state.pieces > 0 && event.piece >= state.pieces)) return undefined;
      return { ...state, done: [...state.done, event.piece].sort((a, b) => a - b) };
    case 'merged': {
      if (isStale(state, event.edition)) return undefined;
      const { seconds = state.seconds, warnings = state.warnings } = event;
      // A recording of one piece is finished by its plan.
      const pieces = state.pieces || 1;
      return { ...state, seconds, warnings, pieces, done: Array.from({ length: pieces }, (_, piece) => piece) };
    }
    case 'refused':
      if (isStale(state, event.edition)) return undefined;
      return { ...state, refusal: event.refusal };
    default:
      return state;
  }
}

/** Changes or reruns a document; finished pieces stay. */
function change(
  state: UploadState,
  event: Extract<UploadEvent, { type: 'rerun' | 'edited' }>,
): UploadState | undefined {
  const edition = (state.edition ?? 0) + 1;
  const { refusal: _, ...kept } = state;
  if (event.type === 'rerun') {
    // A rerun without a plan needs the text.
    if (state.status !== 'refused' || (state.pieces === 0 && state.etag === undefined)) return undefined;
    return { ...kept, status: recount(state), seq: state.seq + 1, edition };
  }
  const open = state.pieces > 0 && state.status !== 'cancelled' && state.status !== 'expired';
  if (!open || event.edition !== edition || event.piece >= state.pieces) return undefined;
  const done = state.done.filter((piece) => piece !== event.piece);
  const edits = { ...state.edits, [event.piece]: edition };
  return { ...kept, status: recount({ ...state, done }), seq: state.seq + 1, edition, edits, done };
}

/** Ends a project whenever its documents have ended, until it is deleted. It has no work of its own. */
function nextOfProject(state: UploadState, event: UploadEvent): UploadState | undefined {
  if (state.status === 'cancelled') return undefined;
  const { refusal: _, ...kept } = state;
  // Each end counts as a run, so that receivers can distinguish them.
  const base = { ...kept, seq: state.seq + 1, run: isOver(state.status) ? state.run + 1 : state.run };
  if (event.type === 'cancelled') return { ...base, status: 'cancelled' };
  if (event.type !== 'gathered') return undefined;
  // Documents that were read before another gathering ended the project are of an older edition.
  if (isOver(state.status) && state.edition !== undefined && event.edition <= state.edition) return undefined;
  const { edition, seconds, refusal } = event;
  return { ...base, edition, seconds, ...(refusal ? { status: 'refused', refusal } : { status: 'done' }) };
}

function recount({ pieces, done }: UploadState): UploadStatus {
  if (pieces === 0) return 'admitted';
  if (done.length === pieces) return 'merging';
  return done.length === 0 ? 'planned' : 'working';
}

/** Applies all events in order; `undefined` when none has an effect. */
export function follow(state: UploadState, events: readonly UploadEvent[]): UploadState | undefined {
  const end = events.reduce((now, event) => next(now, event) ?? now, state);
  return end === state ? undefined : end;
}

/** The result of a change that another change followed. */
const isStale = (state: UploadState, edition: number | undefined): boolean =>
  edition !== undefined && edition !== (state.edition ?? 0);

export interface WantedJob {
  readonly kind: JobKind;
  readonly piece?: number;
  readonly edition?: number;
}

/** Returns the jobs that a state needs; empty before it may begin and after its end. */
export function wantedJobs(state: UploadState): WantedJob[] {
  if (state.of === 'project') return [];
  const inChange = (edition = 0) => (edition === 0 ? {} : { edition });
  switch (state.status) {
    case 'admitted':
      return [{ kind: state.detects ? 'detect' : 'plan', ...inChange(state.edition) }];
    case 'planned':
    case 'working': {
      const done = new Set(state.done);
      const all = Array.from({ length: state.pieces }, (_, piece) => piece).filter((piece) => !done.has(piece));
      const now = state.of === 'document' ? all.slice(0, PROJECT_JOBS_MAX) : all;
      return now.map((piece) => ({ kind: 'work', piece, ...inChange(state.edits?.[piece]) }));
    }
    case 'merging':
      return [{ kind: 'merge', ...inChange(state.edition) }];
    default:
      return [];
  }
}
