// Reports the course of files and documents to the audit log. The id of an event derives from its subject, so
// that a retried step reports the same event. Where the log does not take it, the step is not done.
import { createHash } from 'node:crypto';
import type { EventDraft } from '../../shared/audit/event.ts';
import { eventId } from '../../shared/audit/event-id.ts';
import { isUploadId } from '../../shared/jobs/paths.ts';
import { isOver } from '../../shared/jobs/state.ts';
import { refusals } from '../../shared/refusal.ts';
import type { JobContext } from './context.ts';
import type { UploadRecord } from './record.ts';

/** Work begins with this change: a file has come, or what was over goes on. */
const begins = ({ state: from }: UploadRecord, { state: to }: UploadRecord): boolean =>
  from.of !== 'project' &&
  ((from.bytes === undefined && to.bytes !== undefined) || (isOver(from.status) && !isOver(to.status)));

/** Before the change is written. */
export async function reportBegin(context: JobContext, from: UploadRecord, to: UploadRecord): Promise<void> {
  if (!context.audit || !begins(from, to)) return;
  const { run, edition = 0 } = to.state;
  await report(context, to, `begin ${run} ${edition}`, { type: 'inference.attempt', ...requestOf(to), ...wordsOf(to) });
}

/** Reports each end once. Returns the change that marks the record as reported. */
export async function reportEnd(
  context: JobContext,
  record: UploadRecord,
): Promise<((seen: UploadRecord) => UploadRecord | undefined) | undefined> {
  const end = nameOfEnd(record);
  if (!context.audit || end === undefined || record.recorded === end || record.state.of === 'project') return undefined;
  await report(context, record, end, endOf(record));
  // Audio that is not retained is deleted with the end.
  if (record.audio === 'deleted') await reportErased(context, record, 'audio', 'ended');
  return (seen) => (nameOfEnd(seen) === end ? { ...seen, recorded: end } : undefined);
}

/** Each run, and each change of a document, has an end of its own. */
const nameOfEnd = ({ ended, state: { run, edition = 0 } }: UploadRecord): string | undefined =>
  ended === undefined ? undefined : `end ${run} ${edition} ${ended}`;

type Erased = Extract<EventDraft, { type: 'content.erased' }>;

/** Before anything is deleted. */
export async function reportErased(
  context: JobContext,
  record: UploadRecord,
  what: Erased['what'],
  why: Erased['why'],
): Promise<void> {
  if (!context.audit) return;
  const { tenant, id, ended = 0 } = record;
  await report(context, record, `erased ${what} ${why} ${ended}`, {
    type: 'content.erased',
    tenant,
    request: id,
    what,
    why,
  });
}

/** Nothing came: then nothing was attempted. */
function endOf(record: UploadRecord): EventDraft {
  const { state, created, updated } = record;
  const { status, bytes, seconds } = state;
  const why = whyNot(record);
  if (bytes === undefined) return { type: 'inference.denied', ...requestOf(record), reason: why.reason };
  const length = status === 'done' && seconds !== undefined && { audioSeconds: seconds };
  const how = status === 'done' ? { status: 200 } : why;
  const used = { bytes, milliseconds: updated - created, ...length };
  return { type: 'inference.complete', ...requestOf(record), ...wordsOf(record), ...how, ...used };
}

/** Cancelled: as a caller that went away. */
function whyNot({ state: { refusal, status } }: UploadRecord): { status: number; reason: string } {
  if (refusal) return { status: refusals[refusal.reason].status, reason: refusal.reason };
  return status === 'expired' ? { status: 408, reason: 'upload_late' } : { status: 499, reason: 'client_gone' };
}

/** Rows from before commitments are reported without a subject, never by name. */
function requestOf({ tenant, id, request }: UploadRecord) {
  const action = isUploadId(id) ? 'upload.run' : 'document.run';
  return {
    tenant,
    request: id,
    action,
    class: request.class,
    ...(request.commitment !== undefined && { subject: request.commitment }),
  };
}

const wordsOf = ({ request: { model, language } }: UploadRecord) => ({
  model,
  ...(language !== undefined && { language }),
});

async function report(
  context: JobContext,
  { tenant, id, request, created }: UploadRecord,
  what: string,
  draft: EventDraft,
) {
  const about = createHash('sha256').update(`${tenant} ${id} ${what}`).digest();
  const reported = await context.audit?.report(request.zone, draft, eventId(created, about.subarray(0, 10)));
  if (reported && !reported.ok) throw new Error(reported.refusal.detail);
}
