// Decides the changes of rows after events of an upload. Pure: rows and events in, changes out. The changes
// are one transaction, so a crash leaves all of them or none.

import { jobKey } from '../../shared/jobs/job.ts';
import { follow, isOver, type UploadEvent } from '../../shared/jobs/state.ts';
import { NO_LANGUAGE } from '../../shared/pool/language.ts';
import type { Change, Row } from '../store/rows.ts';
import { withoutNames } from './erased.ts';
import {
  audioUntil,
  dueKey,
  dueOf,
  type JobRecord,
  jobRowKey,
  jobsOf,
  largest,
  openKey,
  readJobRecord,
  recordKey,
  rowValueOf,
  type UploadRecord,
  usageRowKey,
} from './record.ts';
import { usageOf } from './usage.ts';

/** The record after the events; `undefined` when they say nothing new. */
export function decideStep(
  record: UploadRecord,
  events: readonly UploadEvent[],
  now: number,
): UploadRecord | undefined {
  const state = follow(record.state, events);
  if (!state) return undefined;
  const over = isOver(state.status);
  const begun = isOver(record.state.status) && !over;
  const { ended: _, noticeDue: __, ...rest } = record;
  const after: UploadRecord = {
    ...rest,
    request: inLanguage(record.request, state),
    // Only its owner cancels, and then wants nothing of it left.
    ...(state.status === 'cancelled' && { request: withoutNames(record.request) }),
    state,
    updated: now,
    // Events tell whether audio exists; it is deleted only after the end.
    audio: state.etag === undefined ? 'none' : record.audio === 'deleted' ? 'deleted' : 'held',
    transcript: state.status === 'done' ? 'held' : 'none',
    ...(over && { ended: now }),
    ...(over && record.request.callback !== undefined && { notice: 'pending', noticeTries: 0, noticeDue: now }),
    ...(begun && { notice: 'none', noticeTries: 0 }),
  };
  if (!over) return { ...after, due: dueOf(after, now) };
  // A finished upload is due at once, for deletion and notice. Audio that is not retained counts as deleted
  // from here on, before its blob goes: no run may begin between the two.
  const goes = now >= (audioUntil(after) ?? Number.POSITIVE_INFINITY);
  return { ...after, ...(goes && { audio: 'deleted' }), due: now };
}

/** Returns the request for the model that serves the detected language. */
function inLanguage(request: UploadRecord['request'], { detected }: UploadRecord['state']): UploadRecord['request'] {
  if (!detected) return request;
  const { language, model } = detected;
  return { ...request, model, ...(language !== NO_LANGUAGE && { language }) };
}

/** The transaction from one record to the next: the record, its marks, and its jobs as they are wanted now. */
export function changesOf(
  before: Row,
  { from, to }: { readonly from: UploadRecord; readonly to: UploadRecord },
  jobs: readonly Row[],
  now: number,
): Change[] {
  const changes: Change[] = [replaceRecord(before, to), ...moveMarks(from, to)];
  const wanted = jobsOf(to);
  for (const row of jobs) {
    const key = jobKey(readJobRecord(row).job);
    if (wanted.has(key)) wanted.delete(key);
    else changes.push({ type: 'remove', key: row.key });
  }
  for (const job of wanted.values()) {
    const value: JobRecord = { job, since: now };
    changes.push({ type: 'insert', key: jobRowKey('w', job), value: { ...value } });
  }
  return changes;
}

export const replaceRecord = ({ key, version }: Row, to: UploadRecord): Change => ({
  type: 'replace',
  key,
  version,
  value: rowValueOf(to),
});

/** The marks beside the record: that it is not over, when to look after it, what it has used once it is over. */
export function moveMarks(from: UploadRecord, to: UploadRecord): Change[] {
  const [wasOver, over] = [isOver(from.state.status), isOver(to.state.status)];
  const changes: Change[] = [];
  if (!wasOver && over) {
    changes.push({ type: 'remove', key: openKey(to.id) });
    const usage = usageOf(to, from.state.seconds !== undefined);
    if (usage) changes.push({ type: 'put', key: usageRowKey(usage), value: { ...usage, since: to.updated } });
  }
  if (wasOver && !over) changes.push({ type: 'insert', key: openKey(to.id), value: sizeOf(to) });
  // An upload of unknown size counts as the largest until its size is known.
  if (!wasOver && !over && from.state.bytes !== to.state.bytes) {
    changes.push({ type: 'put', key: openKey(to.id), value: sizeOf(to) });
  }
  if (dueKey(from) !== dueKey(to)) {
    changes.push({ type: 'remove', key: dueKey(from) }, { type: 'insert', key: dueKey(to), value: {} });
  }
  return changes;
}

const sizeOf = ({ request, state }: UploadRecord) => ({ bytes: state.bytes ?? request.bytes ?? largest(request) });

export const insertRecord = (record: UploadRecord): Change[] => [
  { type: 'insert', key: recordKey(record.id), value: rowValueOf(record) },
  { type: 'insert', key: openKey(record.id), value: sizeOf(record) },
  { type: 'insert', key: dueKey(record), value: {} },
];
