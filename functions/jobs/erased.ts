// The record of an upload, a document or a project once its owner deletes it. Pure.
import { isOver } from '../../shared/jobs/state.ts';
import type { UploadRecord } from './record.ts';

/** `undefined` when it is not over, or nothing is left. */
export function erasedOf(record: UploadRecord, now: number): UploadRecord | undefined {
  const { request, state, transcript, audio } = record;
  // The segments of a document lie there even when it has no sound.
  const segments = state.of === 'document' && transcript !== 'deleted';
  const held = transcript === 'held' || audio === 'held' || segments || request.filename !== undefined;
  if (!isOver(state.status) || !held) return undefined;
  return {
    ...record,
    request: withoutNames(request),
    state: { ...state, seq: state.seq + 1 },
    updated: now,
    transcript: transcript === 'held' || segments ? 'deleted' : transcript,
    audio: audio === 'held' ? 'deleted' : audio,
  };
}

/** Returns the request without names that its owner chose: the file name and titles of a project. */
export function withoutNames({ filename: _, project, ...request }: UploadRecord['request']): UploadRecord['request'] {
  if (!project) return request;
  const { title: __, ...rest } = project;
  const documents = project.documents.map(({ contentType }) => ({ contentType }));
  return { ...request, project: { ...rest, documents } };
}
