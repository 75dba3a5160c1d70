// What the record of an upload or a document says once its owner wants nothing of it left. Pure.
import { isOver } from '../../shared/upload/state.ts';
import type { UploadRecord } from './record.ts';

/** `undefined` when it is not over, or nothing is left. */
export function erasedOf(record: UploadRecord, now: number): UploadRecord | undefined {
  const { state, transcript, audio } = record;
  // The segments of a document lie there even when it has no sound.
  const segments = state.of === 'document' && transcript !== 'deleted';
  if (!isOver(state.status) || (transcript !== 'held' && audio !== 'held' && !segments)) return undefined;
  return {
    ...record,
    state: { ...state, seq: state.seq + 1 },
    updated: now,
    transcript: transcript === 'held' || segments ? 'deleted' : transcript,
    audio: audio === 'held' ? 'deleted' : audio,
  };
}
