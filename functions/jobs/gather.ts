// A project ends when all its documents have. The call that ends one checks, and so does the timer.

import { PROJECT_DOCUMENTS_MAX } from '../../shared/jobs/limits.ts';
import type { UploadPlace } from '../../shared/jobs/paths.ts';
import { documentId, indexOf } from '../../shared/jobs/project-id.ts';
import { isOver, type UploadEvent } from '../../shared/jobs/state.ts';
import { type Refusal, refuse } from '../../shared/refusal.ts';
import { endOf } from '../store/rows.ts';
import type { JobContext } from './context.ts';
import { erasedOf } from './erased.ts';
import { readRecord, recordKey, type UploadRecord } from './record.ts';
import { reportErased } from './report-work.ts';
import { amend, step } from './step.ts';

/** Documents of a project, in their order. */
export async function readDocuments(context: JobContext, { tenant, id }: UploadPlace): Promise<UploadRecord[]> {
  const prefix = recordKey(documentId(id, 0)).slice(0, -2);
  const rows = await context.rows.scan(tenant, prefix, endOf(prefix), PROJECT_DOCUMENTS_MAX);
  return rows.map(readRecord).sort((one, other) => indexOf(one.id) - indexOf(other.id));
}

/** Returns the event of the project that its documents' states imply; `undefined` while one is open. */
function gatheredFrom(documents: readonly UploadRecord[]): UploadEvent | undefined {
  if (documents.length === 0 || !documents.every(({ state }) => isOver(state.status))) return undefined;
  const refusal = documents.map(whyNot).find((one) => one !== undefined);
  return { type: 'gathered', edition: editionsOf(documents), seconds: secondsOf(documents), refusal };
}

/** Rises with every change of any of them. */
export const editionsOf = (documents: readonly UploadRecord[]): number =>
  documents.reduce((sum, { state }) => sum + (state.edition ?? 0), 0);

function secondsOf(documents: readonly UploadRecord[]): number {
  const sum = documents.reduce((all, { state }) => all + (state.status === 'done' ? (state.seconds ?? 0) : 0), 0);
  return Math.round(sum * 1_000) / 1_000;
}

const whyNot = ({ state }: UploadRecord): Refusal | undefined =>
  state.status === 'expired' ? refuse('upload_late') : state.refusal;

/** Ends a project whose documents are over. Returns whether this call did. */
export async function gather(context: JobContext, project: UploadPlace): Promise<boolean> {
  const event = gatheredFrom(await readDocuments(context, project));
  if (!event) return false;
  const stepped = await step(context, project, () => [event]);
  return stepped?.moved === true;
}

/** A project was deleted: its documents are stopped, and what there is of them is to go. Those that changed. */
export async function dropDocuments(context: JobContext, project: UploadPlace): Promise<UploadPlace[]> {
  const dropped: UploadPlace[] = [];
  for (const document of await readDocuments(context, project)) {
    const { tenant, id, state } = document;
    const place = { tenant, id };
    const stepped = isOver(state.status) ? undefined : await step(context, place, () => [{ type: 'cancelled' }]);
    const left = stepped?.record ?? document;
    if (erasedOf(left, context.now())) await reportErased(context, left, 'all', 'owner');
    let erased = false;
    await amend(context, place, (seen) => {
      const after = erasedOf(seen, context.now());
      erased = after !== undefined;
      return after;
    });
    if (stepped?.moved || erased) dropped.push(place);
  }
  return dropped;
}
